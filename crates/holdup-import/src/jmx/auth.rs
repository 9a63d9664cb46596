//! HTTP Authorization Managers: basic credentials as a header, the password as a secret.

use super::Plan;
use super::element::{self, Element};
use super::sampler::has_header;
use crate::scenario::Request;
use crate::target::Origin;

impl Plan<'_> {
    /// The credentials of the first entry that applies to the request.
    pub(super) fn credentials(
        &mut self,
        request: &mut Request,
        manager: &Element<'_>,
        sets: &mut Vec<(String, String)>,
    ) {
        for entry in manager.items("AuthManager.auth_list") {
            let text = |key: &str| element::text(entry, key).unwrap_or_default().trim();
            let mechanism = text("Authorization.mechanism");
            if !matches!(mechanism, "" | "BASIC" | "BASIC_DIGEST") {
                self.left_out(
                    manager,
                    &format!("holdup can't log in with {mechanism}"),
                    "write the Authorization header",
                );
                continue;
            }
            let url = text("Authorization.url");
            let is_for_it = url.is_empty()
                || match (self.names.fixed(url).as_deref().and_then(Origin::split), &request.origin) {
                    (Some((origin, path)), Some(own)) => {
                        origin == *own && request.path.starts_with(path.trim_end_matches('/'))
                    }
                    _ => true,
                };
            if !is_for_it || has_header(request, "Authorization") {
                continue;
            }
            let user = self.template(text("Authorization.username"), manager, sets);
            let raw = text("Authorization.password");
            let mut password = self.template(raw, manager, sets);
            if !password.contains("${") {
                let own = self.names.secrets.name("PASSWORD", raw, &manager.title(), entry.line, &mut self.notes);
                password = format!("${{secret.{own}}}");
            }
            let pair = self.names.text("basic", format!("{user}:{password}"), "");
            request.headers.push(("Authorization".to_owned(), format!("Basic ${{base64({pair})}}")));
        }
    }
}
