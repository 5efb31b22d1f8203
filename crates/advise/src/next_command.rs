//! The command to run next, which applies the recommendation.

use crate::stock::shell_line;
use nodewise_placement::Context;
use nodewise_profile::{BASE_PAGE_SIZE, Observer};

/// How the report was asked for, as its reader would ask again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The folder of the profile, as shown in commands.
    pub profile: String,
    /// The machine, by name or file.
    pub machine: String,
}

/// The recorded command for its plain build: the instrumented one is not what one runs.
pub(crate) fn plain_command(context: &Context<'_>) -> Vec<String> {
    let meta = &context.profile.meta;
    let mut command = meta.command.clone();
    if let (Observer::Instrument, Some(program)) = (meta.observer, command.first_mut()) {
        let name = program.rsplit('/').next().unwrap_or_default();
        if name != "srun" {
            *program = format!("./PLAIN-BUILD-OF-{name}");
        }
    }
    command
}

/// Writes the map of a policy and runs the program under it.
pub(crate) fn map_and_run(policy: &str, context: &Context<'_>, asked: &Asked) -> String {
    let size = context.histogram.page_size();
    let size = (size != BASE_PAGE_SIZE).then(|| format!("{}K", size >> 10));
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let run = |spec: String| {
        let mut run = words("nodewise run --policy");
        run.push(spec);
        // Only huge pages are more than the kernel's own choice.
        if size.as_deref() == Some("2048K") {
            run.extend(words("--page-size 2M"));
        }
        run.push("--".into());
        run.extend(plain_command(context));
        shell_line(&run)
    };
    if policy.starts_with("map:") {
        return run(policy.to_owned());
    }
    let mut map = words("nodewise map");
    map.extend(Some(&asked.profile).filter(|p| !p.is_empty()).cloned());
    for (option, value) in [
        ("--machine", Some(&asked.machine)),
        ("--affinity", Some(&context.affinity.name)),
        ("--page-size", size.as_ref()),
        ("--policy", Some(&policy.to_owned())),
        ("-o", Some(&"app.map".to_owned())),
    ] {
        map.extend(value.into_iter().flat_map(|v| [option.to_owned(), v.clone()]));
    }
    format!("{} && {}", shell_line(&map), run("map:app.map".into()))
}
