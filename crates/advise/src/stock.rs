//! Placements that need no nodewise: the command lines everybody has.

/// The stock command line of a policy, if there is one.
///
/// Interleaving is `numactl`'s, dealt out in fault order; it comes to the same balance.
/// First-touch needs only threads that stay: OpenMP's own binding, or the job launcher's.
#[must_use]
pub fn stock_command(policy: &str, affinity: &str, command: &[String]) -> Option<String> {
    let line = shell_line(command);
    let launched = command
        .first()
        .is_some_and(|c| c.rsplit('/').next() == Some("srun"));
    match policy.split_once(':').unwrap_or((policy, "")) {
        ("first-touch", _) if launched => {
            let rest = shell_line(&command[1..]);
            Some(format!("srun --cpu-bind=cores --mem-bind=local {rest}"))
        }
        ("first-touch", _) => {
            let bind = if affinity == "scatter" { "spread" } else { "close" };
            Some(format!("OMP_PROC_BIND={bind} OMP_PLACES=cores {line}"))
        }
        ("interleave" | "round-robin", _) => Some(format!("numactl --interleave=all {line}")),
        ("node", node) => Some(format!("numactl --preferred={node} {line}")),
        _ => None,
    }
}

/// A command as one would type it: words quoted where a shell needs it.
#[must_use]
pub fn shell_line(command: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    let quoted = |word: &String| match word.as_str() {
        w if !w.is_empty() && w.chars().all(plain) => w.to_owned(),
        w => format!("'{}'", w.replace('\'', "'\\''")),
    };
    command.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split('|').map(str::to_owned).collect()
    }

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        assert_eq!(shell_line(&words("./a|-n|10")), "./a -n 10");
        assert_eq!(shell_line(&words("./a|it's|x y|")), r"./a 'it'\''s' 'x y' ''");
    }

    #[test]
    fn only_policies_a_stock_tool_knows_have_a_stock_command() {
        let command = words("./a");
        assert_eq!(
            stock_command("interleave", "compact", &command).unwrap(),
            "numactl --interleave=all ./a"
        );
        assert_eq!(
            stock_command("node:2", "compact", &command).unwrap(),
            "numactl --preferred=2 ./a"
        );
        assert!(stock_command("mixed:0.9", "compact", &command).is_none());
        let spread = stock_command("first-touch", "scatter", &command).unwrap();
        assert_eq!(spread, "OMP_PROC_BIND=spread OMP_PLACES=cores ./a");
        let job = stock_command("first-touch", "compact", &words("srun|-n|1|./a")).unwrap();
        assert_eq!(job, "srun --cpu-bind=cores --mem-bind=local -n 1 ./a");
    }
}
