//! The command to run next, which applies the recommendation.

use nodewise_input::shell_line;
use nodewise_placement::Context;
use nodewise_profile::{BASE_PAGE_SIZE, Observer};

/// How the report was asked for, as its reader would ask again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The folder of the profile, as shown in commands.
    pub profile: String,
    /// The machine, by name or file.
    pub machine: String,
    /// The program's build that does not count, if it was named.
    pub plain: Option<String>,
}

/// A command that runs the program, or what is known of it.
pub(crate) struct Runs {
    /// The command, word by word.
    pub command: Vec<String>,
    /// The recorded program, where only its instrumented build is known: that is not what one runs, and the command
    /// has a word in its place.
    pub instrumented: Option<String>,
}

/// Placeholder in the command for a build that the user has not named.
const STAND_IN: &str = "PROGRAM";

/// The recorded command for its plain build.
pub(crate) fn plain_command(context: &Context<'_>, asked: &Asked) -> Runs {
    let meta = &context.profile.meta;
    let (mut command, mut instrumented) = (meta.command.clone(), None);
    if let Some(program) = command
        .first_mut()
        .filter(|p| p.rsplit('/').next() != Some("srun"))
    {
        if let Some(plain) = &asked.plain {
            program.clone_from(plain);
        } else if meta.observer == Observer::Instrument {
            instrumented = Some(std::mem::replace(program, STAND_IN.to_owned()));
        }
    }
    Runs {
        command,
        instrumented,
    }
}

/// A line to run a program with that is not known, in words: it cannot be copied as it is.
pub(crate) fn in_words(program: &str, line: &str) -> String {
    format!(
        "run the build of {program} that was made without nodewise-cc (--plain PATH names it here): {line}"
    )
}

/// Writes the map of a policy, unless that is one already, and runs the command under it.
pub(crate) fn map_and_run(
    policy: &str,
    command: &[String],
    context: &Context<'_>,
    asked: &Asked,
) -> (Option<String>, String) {
    let size = page_size(context);
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let run = |spec: String| {
        let mut run = words("nodewise run --policy");
        run.push(spec);
        // Only huge pages are more than the kernel's own choice.
        if size.as_deref() == Some("2048K") {
            run.extend(words("--page-size 2M"));
        }
        run.push("--".into());
        run.extend_from_slice(command);
        shell_line(&run)
    };
    if policy.starts_with("map:") {
        return (None, run(policy.to_owned()));
    }
    let mut map = words("nodewise map");
    map.extend(Some(&asked.profile).filter(|p| !p.is_empty()).cloned());
    map.extend(options(context, asked));
    map.extend(["--policy", policy, "-o", "app.map"].map(str::to_owned));
    (Some(shell_line(&map)), run("map:app.map".into()))
}

/// Options that ask the same question again.
pub(crate) fn options(context: &Context<'_>, asked: &Asked) -> Vec<String> {
    let all = [
        ("--machine", Some(asked.machine.clone())),
        ("--affinity", Some(context.affinity.name.clone())),
        ("--page-size", page_size(context)),
    ];
    let given = all
        .into_iter()
        .filter_map(|(option, value)| Some([option.to_owned(), value?]));
    given.flatten().collect()
}

/// As the option takes it, where it is not the usual one.
fn page_size(context: &Context<'_>) -> Option<String> {
    let size = context.histogram.page_size();
    (size != BASE_PAGE_SIZE).then(|| format!("{}K", size >> 10))
}
