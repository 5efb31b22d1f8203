//! A process that sleeps, for tests; it ends with the value, also where a test fails.

use std::process::{Child, Command};

pub struct Sleeper(Child);

impl Sleeper {
    pub fn start() -> Self {
        Self(Command::new("/bin/sleep").arg("600").spawn().unwrap())
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
