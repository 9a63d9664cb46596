//! Threads that take requests, by the names that servers give them. Linux keeps 15 bytes of a name: JDK
//! up to 21 keep the first, later ones the first seven and the last six with two dots between.

/// How a server's thread may be told from its name.
enum Told {
    Worker,
    /// The name ends before what tells workers from the two others of a connector.
    Maybe,
    No,
}

/// Threads beside its workers that a connector of Tomcat has: one accepts, one polls.
const OTHERS: usize = 2;

/// Beginnings of the names of Tomcat's connectors, as the kernel has them: whole, and with the dots.
const WHOLE: &[&str] = &["http-nio-", "https-jsse-nio-"];
const DOTTED: &[&str] = &["http-ni..", "https-j.."];

/// Of threads with these `names` those that take requests; none if no name is known to be of one.
pub(super) fn count<'a>(names: impl Iterator<Item = &'a str>) -> Option<usize> {
    let (mut workers, mut maybe) = (0_usize, 0_usize);
    for name in names {
        match tell(name) {
            Told::Worker => workers += 1,
            Told::Maybe => maybe += 1,
            Told::No => {}
        }
    }
    Some(workers + maybe.saturating_sub(OTHERS)).filter(|count| *count > 0)
}

fn tell(name: &str) -> Told {
    // Undertow and Puma.
    if name.starts_with("XNIO-") && name.contains(" task-") || name.starts_with("puma srv tp") {
        return Told::Worker;
    }
    let after = |names: &[&str]| names.iter().find_map(|beginning| name.strip_prefix(beginning));
    // `http-ni..ec-100` of `exec-100`; the others have no number.
    if let Some(rest) = after(DOTTED) {
        return if rest.contains('-') { Told::Worker } else { Told::No };
    }
    // `http-nio-8080-e` of `exec-1`; Acceptor, Poller and BlockPoller are the others.
    let Some(rest) = after(WHOLE) else { return Told::No };
    match rest.find(|c: char| c.is_ascii_alphabetic()) {
        None => Told::Maybe,
        Some(at) if rest.get(at..).is_some_and(|word| word.starts_with('e')) => Told::Worker,
        Some(_) => Told::No,
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn the_names_that_the_kernel_keeps_tell_workers() {
        let counted = |names: &[&str]| count(names.iter().copied());
        let tomcat = ["http-nio-8080-e", "http-nio-8080-e", "http-nio-8080-P", "http-nio-8080-A", "C2 CompilerThre"];
        assert_eq!(counted(&tomcat), Some(2));
        // With a longer port all of them have one name: Poller and Acceptor are among them.
        assert_eq!(counted(&["http-nio-41507-"; 6]), Some(4));
        // Of JDK 22 on.
        let later = ["http-ni..exec-1", "http-ni..xec-10", "http-ni..ec-100", "http-ni..Poller", "http-ni..ceptor"];
        assert_eq!(counted(&later), Some(3));
        assert_eq!(counted(&["XNIO-1 task-12", "XNIO-1 I/O-1", "XNIO-1 Accept"]), Some(1));
        assert_eq!(counted(&["puma srv tp 001", "puma srv", "puma reactor"]), Some(1));
        assert_eq!(counted(&["gunicorn", "http", "qtp-1-selector", ""]), None);
    }
}
