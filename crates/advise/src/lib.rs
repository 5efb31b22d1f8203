//! The verdict: ranking with uncertainty, blame per object, snippets.
