//! Checks that the page's script and style exist; `make web` builds them from `web/`.

use std::path::Path;

fn main() {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/web");
    for name in ["page.js", "page.css"] {
        let file = built.join(name);
        println!("cargo::rerun-if-changed={}", file.display());
        assert!(
            file.is_file(),
            "build/web/{name} is missing: run `make web` first (it needs npm)"
        );
    }
}
