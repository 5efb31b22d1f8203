//! Pages that were moved on the whole host, and by what (`/proc/vmstat`).

use crate::Host;

const DAMON: &str = "sys/kernel/mm/damon/admin/kdamonds";

/// Numbers of pages of 4 KiB since the host was booted, or [between two readings](PageMoves::since).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageMoves {
    /// All, also those that stay on their node (compaction).
    pub all: u64,
    /// By the kernel's NUMA balancing, with `promoted`.
    pub misplaced: u64,
    /// By its tiering, from slow memory to fast memory.
    pub promoted: u64,
    /// By its tiering, to slow memory instead of being reclaimed.
    pub demoted: u64,
}

impl PageMoves {
    /// What was moved since an earlier reading.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            all: self.all.saturating_sub(before.all),
            misplaced: self.misplaced.saturating_sub(before.misplaced),
            promoted: self.promoted.saturating_sub(before.promoted),
            demoted: self.demoted.saturating_sub(before.demoted),
        }
    }

    /// By the kernel's NUMA balancing to the CPUs that access them, promoted ones left out.
    #[must_use]
    pub fn balanced(&self) -> u64 {
        // The two are not counted at the same moment.
        self.misplaced.saturating_sub(self.promoted)
    }

    /// What is left if so many were moved by whoever asks.
    #[must_use]
    pub fn others(&self, ours: u64) -> u64 {
        let known = ours + self.misplaced.max(self.promoted) + self.demoted;
        self.all.saturating_sub(known)
    }

    /// `None` if the kernel does not count moves.
    fn parse(vmstat: &str) -> Option<Self> {
        let sum = |of: &dyn Fn(&str) -> bool| -> Option<u64> {
            let figures = vmstat.lines().filter_map(|line| line.split_once(' '));
            let counts = figures
                .filter(|f| of(f.0))
                .filter_map(|f| f.1.trim().parse::<u64>().ok());
            counts.reduce(|a, b| a + b)
        };
        let of = |counter: &str| sum(&|name| name == counter);
        Some(Self {
            all: of("pgmigrate_success")?,
            // Promoted pages are counted here, too (`migrate_misplaced_folio`).
            misplaced: of("numa_pages_migrated").unwrap_or(0),
            promoted: of("pgpromote_success").unwrap_or(0),
            demoted: sum(&|name| name.starts_with("pgdemote_")).unwrap_or(0),
        })
    }
}

impl Host {
    /// What was moved on this host so far; `None` if the kernel does not say.
    #[must_use]
    pub fn page_moves(&self) -> Option<PageMoves> {
        PageMoves::parse(&self.read("proc/vmstat").ok()?)
    }

    /// Whether a scheme of DAMON moves pages between nodes (`migrate_hot`, `migrate_cold`). How many is not asked for: the kernel
    /// brings its statistics up to date only when told to, which takes as long as DAMON's intervals and stops its owner's tools meanwhile.
    #[must_use]
    pub fn damon_migrates(&self) -> bool {
        let runs = |thread: &String| {
            self.line(&format!("{thread}/state"))
                .is_some_and(|state| state == "on")
        };
        let threads = self.numbered(DAMON).into_iter().filter(runs);
        let contexts = threads.flat_map(|thread| self.numbered(&format!("{thread}/contexts")));
        let mut schemes = contexts.flat_map(|context| self.numbered(&format!("{context}/schemes")));
        schemes.any(|scheme| {
            let action = self.line(&format!("{scheme}/action"));
            action.is_some_and(|action| action.starts_with("migrate_"))
        })
    }

    /// The folders below this one whose names are numbers.
    fn numbered(&self, below: &str) -> Vec<String> {
        let names = self.names(below).unwrap_or_default().into_iter();
        let numbers = names.filter(|name| name.bytes().all(|b| b.is_ascii_digit()));
        numbers.map(|name| format!("{below}/{name}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn each_move_has_one_cause() {
        let before = PageMoves::parse(
            "nr_free_pages 7\nnuma_pages_migrated 50\npgmigrate_success 100\npgmigrate_fail 3\npgdemote_kswapd 4\n\
             pgdemote_direct 2\npgpromote_success 30\npgpromote_candidate 900\n",
        );
        let before = before.unwrap();
        assert_eq!(
            [before.all, before.balanced(), before.promoted, before.demoted],
            [100, 20, 30, 6]
        );
        let later = "numa_pages_migrated 80\npgmigrate_success 200\npgdemote_kswapd 14\npgdemote_direct 2\npgdemote_khugepaged 5\n\
            pgpromote_success 35\n";
        let between = PageMoves::parse(later).unwrap().since(&before);
        assert_eq!(
            [between.all, between.balanced(), between.promoted, between.demoted],
            [100, 25, 5, 15]
        );
        assert_eq!(between.others(40), 15);
        assert_eq!(between.others(90), 0, "counters are read one after the other");
        assert_eq!(
            PageMoves::parse("nr_free_pages 7\n"),
            None,
            "a kernel without migration"
        );
    }

    #[test]
    fn damon_migrates_where_such_a_scheme_runs() {
        let root = std::env::temp_dir().join(format!("nodewise-moves-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let write = |below: &str, text: &str| {
            let file = root.join(DAMON).join(below);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        let host = Host::at(&root);
        assert!(!host.damon_migrates(), "no DAMON");
        write("nr_kdamonds", "1\n");
        write("0/state", "on\n");
        write("0/contexts/0/schemes/0/action", "pageout\n");
        assert!(!host.damon_migrates());
        write("0/contexts/0/schemes/1/action", "migrate_cold\n");
        assert!(host.damon_migrates());
        write("0/state", "off\n");
        assert!(!host.damon_migrates());
        fs::remove_dir_all(&root).unwrap();
    }
}
