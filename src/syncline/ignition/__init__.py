"""The languages in which machines are configured: Ignition, and Butane in ``ignition/butane``. Pure: text in, text and
a report out.

A *configuration* is plain JSON as upstream would print it at its version (*canonical*: known fields in upstream's
order, nothing that upstream leaves out), so it can be stored, compared and written as it is. What other rooms call:

| Call | Does |
|---|---|
| ``parsing.parse(raw)`` | text of 3.x → ``(config or None, Report with places, error or None)``; never raises |
| ``parsing.validate(config, "3.5.0")`` | ``Report`` about a canonical configuration, without places |
| ``typed.canonical(minor, config)`` | a configuration built by hand, made canonical |
| ``jsontext.dump(config)`` | JSON text, byte for byte as Go writes it |
| ``merging.merge(minor, parent, child)`` | the child over the parent; ``merge_transcribed``: also what came whence |
| ``upward.lift(config, minor, target)`` | 3.minor as a newer 3.target |
| ``payload.decode_payload(raw)`` | bytes without base64 and gzip; raises ``PayloadError`` |
| ``payload.decode_file_contents(source, compression)`` | bytes of one file; raises ``PayloadError`` |
| ``negotiate.negotiate(accept)`` | the version to serve, ``"3.4.0"``; raises ``NegotiationError`` |
| ``report.Report`` | ``.entries``, ``.fatal``, ``str(report)`` as upstream prints it |
"""
