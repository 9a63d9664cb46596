//! Elements other than steps. Some act on the requests around them. The others are listed with the
//! reason and the way out, so that no part of a plan is dropped silently.

use super::Plan;
use super::element::Element;
use super::timer;

impl Plan<'_> {
    /// A sampler of another protocol, or a script.
    pub(super) fn other_sampler(&mut self, at: &Element<'_>) {
        let (why, advice) = match at.class.as_str() {
            "DebugSampler" => ("it only shows variables", ""),
            "JDBCSampler" => (
                "a scenario has one target, and this one speaks HTTP",
                "write a separate scenario with a mysql:// or postgres:// target and query: steps",
            ),
            "JSR223Sampler" | "BeanShellSampler" | "BSFSampler" | "JavaSampler" | "SystemSampler" => {
                ("holdup runs no scripts or programs", "replace it by set:, templates or captures")
            }
            _ => ("it is not an HTTP request", ""),
        };
        self.left_out(at, why, advice);
    }

    /// Lists each element below one that has no place here.
    pub(super) fn look_at_rest(&mut self, at: &Element<'_>) {
        self.look_at(at);
        at.children.iter().for_each(|child| self.look_at_rest(child));
    }

    /// An element that is not a step: it acts on the requests around it, or it is listed.
    pub(super) fn look_at(&mut self, at: &Element<'_>) {
        match at.class.as_str() {
            "HeaderManager" | "AuthManager" | "Arguments" | "CSVDataSet" | "ConfigTestElement"
            | "ResponseAssertion" | "DurationAssertion" | "JSONPathAssertion" | "SizeAssertion" | "RegexExtractor"
            | "BoundaryExtractor" | "JSONPostProcessor" | "JMESPathExtractor" => {}
            class if timer::is_delay(class) || timer::is_pacer(class) => {}
            "CookieManager" => self.has_cookies = true,
            "CounterConfig" => {
                self.changed(at, "numbers are unique in the whole run, but start elsewhere and have gaps", "")
            }
            "CacheManager" => self.left_out(
                at,
                "holdup has no cache and sends each request",
                "leave out files that a browser would have in its cache",
            ),
            "DNSCacheManager" => self.left_out(at, "holdup resolves the target's name once", ""),
            "KeystoreConfig" => self.left_out(at, "holdup sends no client certificates", ""),
            "ResultCollector" | "Summariser" => self.listeners.push(at.line),
            "BackendListener" => self.left_out(
                at,
                "--out says where holdup sends figures, not the plan",
                "see holdup run --help for its outputs",
            ),
            "SyncTimer" => self.left_out(at, "sessions do not wait for each other", "use a spike as the load"),
            "DebugPostProcessor" => self.left_out(at, "it only shows variables", ""),
            "XPathExtractor" | "XPath2Extractor" | "HtmlExtractor" => {
                self.left_out(at, "holdup does not parse XML and HTML", "capture it with a pattern: regex PATTERN")
            }
            "UserParameters" => {
                self.left_out(at, "values per thread are not carried over", "put them into a CSV file and use a feeder")
            }
            "URLRewritingModifier" | "AnchorModifier" | "RegExUserParameters" => {
                self.left_out(
                    at,
                    "holdup does not change requests by responses on its own",
                    "capture the value and put it into the request",
                );
            }
            class if class.starts_with("JSR223") || class.starts_with("BeanShell") || class.starts_with("BSF") => {
                self.left_out(at, "holdup runs no scripts", "replace it by set:, templates, captures or checks");
            }
            class if class.starts_with("JDBC") => {
                self.left_out(at, "a scenario has one target, and this one speaks HTTP", "")
            }
            class if class.ends_with("Assertion") => {
                self.left_out(at, "holdup does not know this check", "write a check of status, header or body")
            }
            class if class.ends_with("PostProcessor") || class.ends_with("Extractor") => {
                self.left_out(at, "holdup does not know this extractor", "capture it: json, regex, header or cookie");
            }
            class if class.ends_with("Timer") => {
                self.left_out(at, "holdup does not know this timer", "write think: or the load")
            }
            class
                if at.gui.ends_with("Visualizer")
                    || at.gui.ends_with("Listener")
                    || class.ends_with("Collector")
                    || class.ends_with("Listener") =>
            {
                self.listeners.push(at.line);
            }
            _ => self.left_out(at, "holdup does not know this kind of element", ""),
        }
    }
}
