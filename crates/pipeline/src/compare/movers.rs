//! The policies of a comparison that move pages.

use super::moving::{Limits, Split};
use crate::Selected;
use anyhow::bail;
use nodewise_simulation::{Moving, Parameters};

/// Creates the policies of a comparison that move pages, anew for each pass.
pub struct Movers<'a> {
    pub limits: &'a Limits,
    /// Whether to draw the only policy that moves pages.
    pub drawn: bool,
    /// Whether to list every move.
    pub listed: bool,
    pub selected: &'a Selected,
    pub list: &'a Split,
    pub parameters: &'a Parameters,
}

impl Movers<'_> {
    pub fn one(&self, policy: &str) -> anyhow::Result<Moving> {
        self.limits.moving(policy, self.selected, self.parameters)
    }

    pub fn all(&self) -> anyhow::Result<Vec<Moving>> {
        let moving = self.list.moving.iter().map(|p| self.one(p));
        let mut moving = moving.collect::<anyhow::Result<Vec<_>>>()?;
        if self.drawn && moving.len() != 1 {
            bail!("--svg draws one policy that moves pages: --policy balance:out-w, or --policy replay");
        }
        moving
            .iter_mut()
            .for_each(|m| m.traced = self.drawn || self.listed);
        Ok(moving)
    }
}
