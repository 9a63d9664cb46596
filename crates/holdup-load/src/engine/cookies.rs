//! The cookies of one user (one connection): RFC 6265 as far as a single origin needs it. They are
//! kept by name and path. Domains are ignored, because only the target is ever asked. A cookie with
//! `Max-Age=0` (or less) is deleted; longer lifetimes are ignored, because no run is long enough
//! for them to matter.

/// Most cookies of one user, and (below) most bytes of one: the least that browsers support (RFC
/// 6265, section 6.1).
const MOST: usize = 50;
const LONGEST: usize = 4_096;

struct Cookie {
    name: Box<[u8]>,
    value: Box<[u8]>,
    path: Box<str>,
}

/// See the module.
#[derive(Default)]
pub struct Cookies(Vec<Cookie>);

impl Cookies {
    /// Stores a `Set-Cookie` of the response to a request for `request_path`.
    pub fn take(&mut self, header: &[u8], request_path: &str) {
        if header.len() > LONGEST || header.iter().any(|b| *b < b' ' || *b == 0x7f) {
            return;
        }
        let mut parts = header.split(|b| *b == b';').map(<[u8]>::trim_ascii);
        let Some(pair) = parts.next() else { return };
        let Some(equals) = pair.iter().position(|b| *b == b'=') else { return };
        let (name, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
        if name.is_empty() {
            return;
        }
        let own = request_path.split('?').next().unwrap_or("/");
        let folder = own.rfind('/').filter(|at| *at > 0).map_or("/", |at| &own[..at]);
        let (mut path, mut is_over) = (folder.to_owned(), false);
        for attribute in parts {
            let attribute = String::from_utf8_lossy(attribute);
            let (key, value) = attribute.split_once('=').unwrap_or((&attribute, ""));
            match key.trim().to_ascii_lowercase().as_str() {
                "path" if value.trim().starts_with('/') => path = value.trim().to_owned(),
                "max-age" => is_over |= value.trim().parse::<i64>().is_ok_and(|seconds| seconds <= 0),
                // How servers deleted cookies before Max-Age existed: a date in 1970.
                "expires" => is_over |= value.contains("1970"),
                _ => {}
            }
        }
        self.0.retain(|c| *c.name != *name || *c.path != *path);
        if !is_over && self.0.len() < MOST {
            self.0.push(Cookie { name: name.into(), value: value.into(), path: path.into() });
        }
    }

    /// The value of the `Cookie` header for `path`, longest paths first; none without cookies.
    pub fn header(&self, path: &str) -> Option<String> {
        let path = path.split('?').next().unwrap_or("/");
        let mut mine: Vec<&Cookie> = self.0.iter().filter(|c| covers(&c.path, path)).collect();
        mine.sort_by_key(|c| std::cmp::Reverse(c.path.len()));
        let pair = |c: &&Cookie| format!("{}={}", String::from_utf8_lossy(&c.name), String::from_utf8_lossy(&c.value));
        (!mine.is_empty()).then(|| mine.iter().map(pair).collect::<Vec<_>>().join("; "))
    }
}

/// Whether a cookie of path `scope` is sent to `path`: RFC 6265, section 5.1.4.
fn covers(scope: &str, path: &str) -> bool {
    path.strip_prefix(scope).is_some_and(|rest| rest.is_empty() || scope.ends_with('/') || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_come_back_where_they_belong() {
        let mut jar = Cookies::default();
        jar.take(b"session=abc; Path=/; HttpOnly", "/login");
        jar.take(b"cart = 7 ", "/shop/items?x=/y");
        assert_eq!(jar.header("/").as_deref(), Some("session=abc"));
        assert_eq!(jar.header("/shop/pay?now").as_deref(), Some("cart=7; session=abc"));
        assert_eq!(jar.header("/shopping").as_deref(), Some("session=abc"));
        jar.take(b"session=def; path=/", "/");
        jar.take(b"cart=; Max-Age=0", "/shop/items");
        assert_eq!(jar.header("/shop/pay").as_deref(), Some("session=def"));
        jar.take(b"session=x; Expires=Thu, 01 Jan 1970 00:00:00 GMT; path=/", "/");
        assert_eq!(jar.header("/"), None);
    }

    #[test]
    fn hostile_ones_are_left_out_and_their_number_is_bounded() {
        let mut jar = Cookies::default();
        for bad in [&b"no pair"[..], b"=v", b"a=b\r\nEvil: 1", &[b'x'; 5_000]] {
            jar.take(bad, "/");
        }
        assert_eq!(jar.header("/"), None);
        for i in 0..200 {
            jar.take(format!("c{i}=1; path=/").as_bytes(), "/");
        }
        assert_eq!(jar.header("/").map(|h| h.split("; ").count()), Some(MOST));
    }
}
