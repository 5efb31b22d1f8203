//! The command to run next, which applies the recommendation.

use nodewise_input::shell_line;
use nodewise_placement::Context;
use nodewise_profile::{BASE_PAGE_SIZE, Observer};

/// The options with which the report was requested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportOptions {
    /// The folder of the profile, as shown in commands.
    pub profile: String,
    /// The machine, by name or file.
    pub machine: String,
    /// The program's build without counting, if it was named.
    pub plain: Option<String>,
    /// The file to which the map is to be written.
    pub map: String,
}

/// A command that runs the program.
pub(crate) struct ProgramCommand {
    /// The command, word by word.
    pub command: Vec<String>,
    /// The recorded program if only its instrumented build is known. The command then has a placeholder, because one
    /// does not want to run the instrumented build.
    pub instrumented: Option<String>,
}

/// Placeholder in the command for a build that the user has not named.
const PROGRAM_PLACEHOLDER: &str = "PROGRAM";

/// The recorded command with the plain build of the program.
pub(crate) fn plain_command(context: &Context<'_>, report_options: &ReportOptions) -> ProgramCommand {
    let meta = &context.profile.meta;
    let (mut command, mut instrumented) = (meta.command.clone(), None);
    if let Some(program) = command
        .first_mut()
        .filter(|p| p.rsplit('/').next() != Some("srun"))
    {
        if let Some(plain) = &report_options.plain {
            program.clone_from(plain);
        } else if meta.observer == Observer::Instrument {
            instrumented = Some(std::mem::replace(program, PROGRAM_PLACEHOLDER.to_owned()));
        }
    }
    ProgramCommand {
        command,
        instrumented,
    }
}

/// A command line in words, for a program whose path is not known: it cannot be copied unchanged.
pub(crate) fn in_words(program: &str, line: &str) -> String {
    format!(
        "run the build of {program} that was made without nodewise-cc (--plain PATH names it here): {line}"
    )
}

/// The command lines that write the map of a policy (unless it is a map already), and that run the program under it.
pub(crate) fn map_and_run(
    policy: &str,
    command: &[String],
    context: &Context<'_>,
    report_options: &ReportOptions,
) -> (Option<String>, String) {
    let size = page_size(context);
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let run = |spec: String| {
        let mut run = words("nodewise run --policy");
        run.push(spec);
        // Only huge pages need an option: base pages are the kernel's own choice.
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
    map.extend(Some(&report_options.profile).filter(|p| !p.is_empty()).cloned());
    map.extend(options(context, report_options));
    map.extend(["--policy", policy, "-o", &report_options.map].map(str::to_owned));
    (Some(shell_line(&map)), run(format!("map:{}", report_options.map)))
}

/// The options with which the report was requested; the page size only if it is not the default.
pub(crate) fn options(context: &Context<'_>, report_options: &ReportOptions) -> Vec<String> {
    let all = [
        ("--machine", Some(report_options.machine.clone())),
        ("--affinity", Some(context.affinity.name.clone())),
        ("--page-size", page_size(context)),
    ];
    let given = all
        .into_iter()
        .filter_map(|(option, value)| Some([option.to_owned(), value?]));
    given.flatten().collect()
}

/// The page size as its option takes it, if it is not the default.
fn page_size(context: &Context<'_>) -> Option<String> {
    let size = context.histogram.page_size();
    (size != BASE_PAGE_SIZE).then(|| format!("{}K", size >> 10))
}
