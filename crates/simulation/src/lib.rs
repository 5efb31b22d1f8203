//! What a placement costs on a machine.
