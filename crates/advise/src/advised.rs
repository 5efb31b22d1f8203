//! The texts on one object, made from its facts.

use crate::blame::Blame;
use crate::matched::Matched;
use crate::{advice, sampled, sentence};
use nodewise_analysis::Samples;
use nodewise_placement::Context;

/// One object: the facts, and the texts made from them.
#[derive(Clone, Debug, PartialEq)]
pub struct Advised {
    /// The facts that the texts are made from.
    pub blame: Blame,
    /// What happened, one sentence.
    pub sentence: String,
    /// What to do, one sentence.
    pub advice: String,
    /// C code that follows the advice.
    pub snippet: Option<String>,
}

impl Advised {
    pub(crate) fn of(
        blame: Blame,
        context: &Context<'_>,
        matched: Option<&Matched>,
        samples: Option<&Samples>,
    ) -> Self {
        let seen = samples.map(|s| s.object(blame.object));
        let (sentence, (advice, snippet)) = match seen {
            Some(seen) => (
                sampled::sentence(&blame, &seen),
                (sampled::advice(&blame, &seen), None),
            ),
            None => (
                sentence::sentence(&blame),
                advice::advice(&blame, context, matched),
            ),
        };
        Self {
            blame,
            sentence,
            advice,
            snippet,
        }
    }
}
