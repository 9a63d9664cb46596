//! HTTP samplers: a request with everything that the plan sets for it elsewhere, the innermost
//! first: headers, cookies, defaults, credentials, delays, extractors, assertions.

use super::element::{self, Element};
use super::expression::translate;
use super::piece::{self, Piece};
use super::{MOST_APPLIED, Plan, timer};
use crate::content::{self, Field};
use crate::error::ImportError;
use crate::scenario::{Content, Request, Step};
use crate::target::{Origin, path_part};
use crate::template::label;
use crate::xml;

/// Methods that scenarios have.
const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

/// A sampler and the defaults that apply to it.
struct Settings<'e, 'a> {
    sampler: &'e Element<'a>,
    defaults: Vec<&'e Element<'a>>,
}

impl<'a> Settings<'_, 'a> {
    /// The sampler's own text, else the innermost default.
    fn filled(&self, key: &str) -> Option<&'a str> {
        let all = std::iter::once(&self.sampler).chain(&self.defaults);
        all.filter_map(|e| e.filled(key)).next()
    }
}

impl Plan<'_> {
    /// The steps of a sampler: its delay, the variables that its functions set, the request.
    /// `scope` holds the elements around it.
    pub(super) fn http(
        &mut self,
        sampler: &Element<'_>,
        scope: &[&Element<'_>],
        on_failure: Option<&'static str>,
    ) -> Result<Vec<Step>, ImportError> {
        // The innermost first: the sampler's own children, then those of its surroundings.
        let around: Vec<&Element<'_>> =
            std::iter::once(&sampler).chain(scope.iter().rev()).flat_map(|e| &e.children).collect();
        self.applied += around.len();
        if self.applied > MOST_APPLIED {
            return Err(self.wrong(sampler.line, "there are too many managers, timers and assertions for its samplers"));
        }
        let defaults = around.iter().copied().filter(|e| e.class == "ConfigTestElement").collect();
        let settings = Settings { sampler, defaults };
        let method = settings.filled("HTTPSampler.method").unwrap_or("GET").to_lowercase();
        if !METHODS.contains(&method.as_str()) {
            self.left_out(sampler, &format!("scenarios do not have the method {}", method.to_uppercase()), "");
            return Ok(Vec::new());
        }
        let mut sets = Vec::new();
        let mut request =
            Request { name: label(&sampler.name), method, line: sampler.line, on_failure, ..Request::default() };
        let Some((origin, path)) = self.address(&settings, &mut sets) else { return Ok(Vec::new()) };
        (request.origin, request.path) = (origin, path);
        self.headers(&mut request, &around, &mut sets);
        self.carry(&mut request, &settings, &mut sets);
        self.behaviour(&settings);
        let mut delay = (0.0, 0.0);
        let mut steps = Vec::new();
        for e in &around {
            if timer::is_delay(&e.class) {
                if let Some((from, to)) = self.delay(e) {
                    delay = (delay.0 + from, delay.1 + to);
                }
            } else if e.class.ends_with("Assertion") {
                self.assertion(e, &mut request);
            } else if e.class.ends_with("Extractor") || e.class == "JSONPostProcessor" {
                self.extractor(e, &mut request);
            }
        }
        request.checks.reverse();
        request.captures.reverse();
        steps.extend(timer::think(delay));
        if !sets.is_empty() {
            steps.push(Step::Set(sets));
        }
        steps.push(Step::Request(Box::new(request)));
        Ok(steps)
    }

    /// A text of the sampler as a template.
    pub(super) fn template(&mut self, text: &str, at: &Element<'_>, sets: &mut Vec<(String, String)>) -> String {
        let title = at.title();
        let done = translate(text, &mut self.names, &mut self.notes, (&title, at.line));
        sets.extend(done.sets);
        done.text
    }

    /// Its target, and the path with its query.
    fn address(
        &mut self,
        settings: &Settings<'_, '_>,
        sets: &mut Vec<(String, String)>,
    ) -> Option<(Option<Origin>, String)> {
        let sampler = settings.sampler;
        let raw = settings.filled("HTTPSampler.path").unwrap_or("/");
        let fixed = self.names.fixed(raw);
        if let Some(url) = fixed.as_deref().filter(|p| p.starts_with("http://") || p.starts_with("https://")) {
            let Some((origin, path)) = Origin::split(url) else {
                self.left_out(sampler, "its address can't be read", "");
                return None;
            };
            // The part behind the host may hold templates.
            let own = raw.splitn(4, '/').nth(3).filter(|_| raw.starts_with("http")).map(|p| format!("/{p}"));
            let path = own.map_or_else(|| crate::template::literal(&path), |p| self.template(&p, sampler, sets));
            return Some((Some(origin), self.with_query(path_part(&path), settings, sets)));
        }
        let mut path = self.template(raw, sampler, sets);
        let pieces = piece::pieces(raw);
        match &fixed {
            // A constant text is checked as it will be sent.
            Some(fixed) if path.contains("${") && path_part(fixed) != *fixed => path = crate::template::literal(fixed),
            None if path.starts_with("${") && self.names.is_found_out(pieces.first()) => {
                self.changed(
                    sampler,
                    "its path begins with a value that is computed while the plan runs",
                    "check that it begins with a /",
                );
            }
            _ => {}
        }
        let has_slash = path.starts_with('/')
            || fixed
                .as_deref()
                .map_or(self.names.is_found_out(pieces.first()) || self.starts_with_slash(pieces.first()), |f| {
                    f.starts_with('/')
                });
        if !has_slash {
            path.insert(0, '/');
        }
        let path = self.with_query(path_part(&path), settings, sets);
        let Some(host) = settings.filled("HTTPSampler.domain") else { return Some((None, path)) };
        let port = settings.filled("HTTPSampler.port").map_or(Some(0.0), |text| self.names.number(text));
        let scheme =
            settings.filled("HTTPSampler.protocol").map_or(Some("http".to_owned()), |text| self.names.fixed(text));
        let scheme = scheme.filter(|s| !s.trim().is_empty()).unwrap_or_else(|| "http".to_owned());
        let port = port.filter(|p| (0.0..=65_535.0).contains(p)).map(|p| p as u16);
        let host = self.names.fixed(host);
        let origin = host.as_deref().and_then(|host| Origin::new(scheme.trim(), host, port.filter(|p| *p > 0)));
        if origin.is_none() && self.base.is_none() {
            self.changed(
                sampler,
                "its server is computed while the plan runs; the scenario sends it to the target",
                "give the target with --base-url",
            );
        }
        Some((origin, path))
    }

    /// Whether a path with this beginning starts with a slash: `${base}/orders`.
    fn starts_with_slash(&self, first: Option<&Piece>) -> bool {
        let Some(Piece::Name(name)) = first else { return false };
        self.names.fixed(&format!("${{{name}}}")).is_some_and(|value| value.starts_with('/'))
    }

    fn with_query(&mut self, path: String, settings: &Settings<'_, '_>, sets: &mut Vec<(String, String)>) -> String {
        let method = settings.filled("HTTPSampler.method").unwrap_or("GET").to_ascii_uppercase();
        if settings.sampler.flag("HTTPSampler.postBodyRaw") || matches!(method.as_str(), "POST" | "PUT" | "PATCH") {
            return path;
        }
        let fields = self.fields(settings, sets);
        let query: Vec<String> = fields.iter().map(Field::in_query).collect();
        if query.is_empty() {
            return path;
        }
        format!("{path}{}{}", if path.contains('?') { '&' } else { '?' }, query.join("&"))
    }

    /// Arguments of the sampler, then those of its defaults.
    fn fields(&mut self, settings: &Settings<'_, '_>, sets: &mut Vec<(String, String)>) -> Vec<Field> {
        let mut all = Vec::new();
        for e in std::iter::once(&settings.sampler).chain(&settings.defaults) {
            let arguments = e.part("HTTPsampler.Arguments").and_then(|p| element::part(p, "Arguments.arguments"));
            for argument in arguments.map_or(&[][..], |a| &a.children) {
                let text = |key: &str| element::text(argument, key).unwrap_or_default();
                let is_encoded = text("HTTPArgument.always_encode").trim() != "true";
                let (name, value) = (text("Argument.name"), text("Argument.value"));
                let mut value = self.template(value, settings.sampler, sets);
                if crate::secret::is_secret(name) && !value.is_empty() && !value.contains("${") {
                    let title = settings.sampler.title();
                    let own = self.names.secrets.name(name, &value, &title, argument.line, &mut self.notes);
                    value = format!("${{secret.{own}}}");
                }
                let name = self.template(name, settings.sampler, sets);
                all.push(Field { name, value, is_encoded });
            }
        }
        all
    }

    /// Headers of all managers around it, the innermost winning, its cookies and credentials.
    fn headers(&mut self, request: &mut Request, around: &[&Element<'_>], sets: &mut Vec<(String, String)>) {
        let mut cookies = Vec::new();
        for manager in around {
            match manager.class.as_str() {
                "HeaderManager" => {
                    for header in manager.items("HeaderManager.headers") {
                        let name = element::text(header, "Header.name").unwrap_or_default().trim();
                        let value = element::text(header, "Header.value").unwrap_or_default().trim();
                        self.header(request, manager, header, name, value, sets);
                    }
                }
                "CookieManager" => {
                    for cookie in manager.items("CookieManager.cookies") {
                        let domain = element::text(cookie, "Cookie.domain").unwrap_or_default().trim();
                        let host = request.origin.as_ref().map_or("", |o| &o.host);
                        if domain.is_empty() || host.ends_with(domain.trim_start_matches('.')) || domain.contains("${")
                        {
                            let name = cookie.attribute("name").unwrap_or_default();
                            let raw = element::text(cookie, "Cookie.value").unwrap_or_default();
                            let value = self.template(raw, manager, sets);
                            cookies.push(format!("{name}={}", self.hidden(name, value, manager, cookie.line, true)));
                        }
                    }
                }
                "AuthManager" => self.credentials(request, manager, sets),
                _ => {}
            }
        }
        if !cookies.is_empty() && !has_header(request, "Cookie") {
            request.headers.push(("Cookie".to_owned(), cookies.join("; ")));
        }
    }

    fn header(
        &mut self,
        request: &mut Request,
        manager: &Element<'_>,
        place: &xml::Element,
        name: &str,
        value: &str,
        sets: &mut Vec<(String, String)>,
    ) {
        if name.is_empty() || has_header(request, name) {
            return;
        }
        if !content::is_header(name) {
            let name = label(name);
            self.left_out(manager, &format!("\"{name}\" is not a valid header name"), "");
        } else if ["content-length", "transfer-encoding", "connection"].contains(&name.to_lowercase().as_str()) {
            self.left_out(manager, &format!("holdup sets the header {name} itself"), "");
        } else if name.eq_ignore_ascii_case("host") {
            self.changed(manager, "the header Host is sent as the plan says, whatever the target", "");
            let value = self.template(value, manager, sets);
            request.headers.push((name.to_owned(), value));
        } else {
            // A variable may hold line breaks as well.
            let fixed = self.names.fixed(value).filter(|fixed| fixed.contains(['\r', '\n', '\0']));
            let value =
                fixed.map_or_else(|| self.template(value, manager, sets), |fixed| crate::template::literal(&fixed));
            let value = value.replace(['\r', '\n', '\0'], " ");
            let value = self.hidden(name, value, manager, place.line, false);
            request.headers.push((name.to_owned(), value));
        }
    }

    /// A value, or the secret that replaces it if it is likely to be one.
    fn hidden(&mut self, name: &str, value: String, at: &Element<'_>, line: usize, is_cookie: bool) -> String {
        let is_secret = crate::secret::is_secret(name) || (is_cookie && name.to_lowercase().contains("sess"));
        if !is_secret || value.contains("${") || value.is_empty() {
            return value;
        }
        let (scheme, rest) = crate::secret::scheme(&value);
        let own = self.names.secrets.name(name, rest, &at.title(), line, &mut self.notes);
        format!("{scheme}${{secret.{own}}}")
    }

    /// The body or form that it sends.
    fn carry(&mut self, request: &mut Request, settings: &Settings<'_, '_>, sets: &mut Vec<(String, String)>) {
        let sampler = settings.sampler;
        let files = sampler.part("HTTPsampler.Files").and_then(|p| element::part(p, "HTTPFileArgs.files"));
        let files: &[xml::Element] = files.map_or(&[], |f| &f.children);
        let can_carry = matches!(request.method.as_str(), "post" | "put" | "patch");
        let is_raw = sampler.flag("HTTPSampler.postBodyRaw");
        if let [file] = files
            && can_carry
            && element::text(file, "File.paramname").unwrap_or_default().trim().is_empty()
            && !sampler.flag("HTTPSampler.DO_MULTIPART_POST")
        {
            let path = element::text(file, "File.path").unwrap_or_default();
            request.content = Content::File(self.names.fixed(path).unwrap_or_else(|| path.to_owned()));
            if let Some(kind) = element::text(file, "File.mimetype").filter(|k| !k.trim().is_empty())
                && !has_header(request, "Content-Type")
            {
                request.headers.push(("Content-Type".to_owned(), kind.trim().to_owned()));
            }
            return;
        }
        if !files.is_empty() {
            self.left_out(
                sampler,
                "it uploads files as parts of a form; the scenario does not send them",
                "write the body yourself, or send one file with body_file",
            );
        }
        if !is_raw && !can_carry {
            return;
        }
        let fields = self.fields(settings, sets);
        if is_raw {
            let body: String = fields.into_iter().map(|field| field.value).collect();
            let mut element = |name: &str, value: &str| {
                self.names.secrets.name(name, value, &sampler.title(), sampler.line, &mut self.notes)
            };
            content::put_text(request, body, &mut element);
        } else if !fields.is_empty() {
            if sampler.flag("HTTPSampler.DO_MULTIPART_POST") {
                self.changed(
                    sampler,
                    "its form is sent urlencoded, not as multipart/form-data",
                    "write the body yourself if the service needs it",
                );
            }
            content::put_form(request, fields);
        }
    }

    /// Settings that belong to the scenario here, not to the request.
    fn behaviour(&mut self, settings: &Settings<'_, '_>) {
        let sampler = settings.sampler;
        let follows = sampler.flag("HTTPSampler.follow_redirects") || sampler.flag("HTTPSampler.auto_redirects");
        self.redirects[usize::from(follows)] += 1;
        if let Some(ms) =
            settings.filled("HTTPSampler.response_timeout").and_then(|t| self.names.number(t)).filter(|ms| *ms > 0.0)
        {
            self.timeout_ms = Some(self.timeout_ms.map_or(ms, |known| known.max(ms)));
        }
        if settings.filled("HTTPSampler.image_parser").is_some_and(|t| t == "true") {
            self.left_out(
                sampler,
                "holdup does not fetch embedded images, styles and scripts",
                "record the page as HAR and import that, or write them as requests",
            );
        }
        if settings.filled("HTTPSampler.proxyHost").is_some() {
            self.left_out(sampler, "it goes through a proxy; holdup sends requests straight to the target", "");
        }
        if settings.filled("HTTPSampler.ipSource").is_some() {
            self.left_out(sampler, "it sets a source address, which holdup does not", "");
        }
    }
}

pub(super) fn has_header(request: &Request, name: &str) -> bool {
    request.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name))
}
