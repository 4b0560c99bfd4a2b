"""Operators of the Operator Lifecycle Manager (OLM): its state machines, catalogues, resolution and controllers.

The state machines are pure and use OLM's reasons and words (operator-framework/operator-lifecycle-manager at 992bb097).
"""
