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
| ``merging.merge(minor, parent, child)`` | the child over the parent, a new canonical configuration |
| ``upward.lift(config, minor, target)`` | 3.minor as a newer 3.target |
| ``converting.parse_and_convert(raw)`` | 2.0 to 2.2 or 3.0 to 3.5 as canonical 3.5.0; raises ``ConversionError`` |
| ``converting.parse_payload(raw)`` | the same for gzip and base64 |
| ``converting.convert_to(config, "3.1.0")`` | 3.5.0 for an older client, also ``"2.2.0"``; raises ``ConversionError`` |
| ``converting.convert_raw_to(raw, version)`` | the same from text, with the config server's verdicts |
| ``converting.refusal(raw)`` | why a machine config may not be rendered, or None |
| ``spec2.parsing.parse2(raw)`` | text of 1 or 2.x → ``(config at 2.4 or None, Report, error or None)`` |
| ``spec2.translating.translate(config, 4, mounts)`` | 2.4 as 3.1, 2.3 as 3.0; raises ``TranslationError`` |
| ``payload.decode_payload(raw)`` | bytes without base64 and gzip; raises ``PayloadError`` |
| ``payload.decode_file_contents(source, compression)`` | bytes of one file; raises ``PayloadError`` |
| ``negotiate.negotiate(accept)`` | the version to serve, ``"3.4.0"``; raises ``NegotiationError`` |
| ``report.Report`` | ``.entries``, ``.fatal``, ``str(report)`` as upstream prints it |
"""
