//! The rules of a map file, applied to a profile.

use super::{Policy, Request};
use crate::{Context, Mapping, PagePolicy, Placement, PolicyError, apply};

/// What `run --policy map:FILE` would do to the recorded program.
#[derive(Clone, Debug)]
pub struct Map {
    path: String,
    placement: Placement,
}

pub(super) fn make(request: &Request<'_>) -> Result<Policy, PolicyError> {
    let path = request
        .parameter
        .ok_or_else(|| PolicyError("policy `map` needs a file: write map:FILE".into()))?;
    let text = request.outside.read(path).map_err(PolicyError)?;
    let placement = Placement::read(&text).map_err(|e| PolicyError(format!("{path}: {e}")))?;
    Ok(Box::new(Map {
        path: path.to_owned(),
        placement,
    }))
}

impl PagePolicy for Map {
    fn name(&self) -> String {
        format!("map:{}", self.path)
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        let (mapping, _) = apply(&self.placement, context);
        Mapping {
            policy: self.name(),
            ..mapping
        }
    }
}
