//! What is no step: it acts on the requests around it, or it is listed with the reason and the way out, so that nothing of a
//! plan is dropped without a word.

use super::Plan;
use super::element::Element;
use super::timer;

impl Plan<'_> {
    /// A sampler of another protocol, or a script.
    pub(super) fn other_sampler(&mut self, at: &Element<'_>) {
        let (why, advice) = match at.class.as_str() {
            "DebugSampler" => ("it only shows variables", ""),
            "JDBCSampler" => (
                "a scenario has one target, and this is HTTP's",
                "make a scenario of its own with a mysql:// or postgres:// target and query: steps",
            ),
            "JSR223Sampler" | "BeanShellSampler" | "BSFSampler" | "JavaSampler" | "SystemSampler" => {
                ("scripts and programs are not run", "say what it is for with set:, templates or captures")
            }
            _ => ("it is no HTTP request", ""),
        };
        self.left_out(at, why, advice);
    }

    /// What is below an element that has no place here: each element of it is listed.
    pub(super) fn look_at_rest(&mut self, at: &Element<'_>) {
        self.look_at(at);
        at.children.iter().for_each(|child| self.look_at_rest(child));
    }

    /// An element that is no step: it acts on requests around it, or it is listed.
    pub(super) fn look_at(&mut self, at: &Element<'_>) {
        match at.class.as_str() {
            "HeaderManager" | "AuthManager" | "Arguments" | "CSVDataSet" | "ConfigTestElement"
            | "ResponseAssertion" | "DurationAssertion" | "JSONPathAssertion" | "SizeAssertion" | "RegexExtractor"
            | "BoundaryExtractor" | "JSONPostProcessor" | "JMESPathExtractor" => {}
            class if timer::is_delay(class) || timer::is_pacer(class) => {}
            "CookieManager" => self.has_cookies = true,
            "CounterConfig" => self.changed(
                at,
                "numbers are unique in the whole run, but do not begin where it says and have gaps",
                "",
            ),
            "CacheManager" => self.left_out(
                at,
                "holdup keeps no cache: each request is sent",
                "leave out what a browser would have in its cache",
            ),
            "DNSCacheManager" => self.left_out(at, "the target's name is resolved once", ""),
            "KeystoreConfig" => self.left_out(at, "certificates of clients are not sent", ""),
            "ResultCollector" | "Summariser" => self.listeners.push(at.line),
            "BackendListener" => self.left_out(
                at,
                "figures are sent where holdup is told to, not where the plan says",
                "see holdup run --help for its outputs",
            ),
            "SyncTimer" => self.left_out(at, "sessions do not wait for each other", "use a spike as the load"),
            "DebugPostProcessor" => self.left_out(at, "it only shows variables", ""),
            "XPathExtractor" | "XPath2Extractor" | "HtmlExtractor" => {
                self.left_out(at, "XML and HTML are not taken apart", "capture it with a pattern: regex PATTERN")
            }
            "UserParameters" => {
                self.left_out(at, "values by thread are not carried over", "put them into a CSV file and use a feeder")
            }
            "URLRewritingModifier" | "AnchorModifier" | "RegExUserParameters" => {
                self.left_out(
                    at,
                    "requests are not changed by what was found in responses by itself",
                    "capture the value and put it into the request",
                );
            }
            class if class.starts_with("JSR223") || class.starts_with("BeanShell") || class.starts_with("BSF") => {
                self.left_out(at, "scripts are not run", "say what it is for with set:, templates, captures or checks");
            }
            class if class.starts_with("JDBC") => {
                self.left_out(at, "a scenario has one target, and this is HTTP's", "")
            }
            class if class.ends_with("Assertion") => {
                self.left_out(at, "this check is not known here", "write a check of status, header or body")
            }
            class if class.ends_with("PostProcessor") || class.ends_with("Extractor") => {
                self.left_out(at, "this extractor is not known here", "capture it: json, regex, header or cookie");
            }
            class if class.ends_with("Timer") => {
                self.left_out(at, "this timer is not known here", "write think: or the load")
            }
            class
                if at.gui.ends_with("Visualizer")
                    || at.gui.ends_with("Listener")
                    || class.ends_with("Collector")
                    || class.ends_with("Listener") =>
            {
                self.listeners.push(at.line);
            }
            _ => self.left_out(at, "an element of this kind is not known here", ""),
        }
    }
}
