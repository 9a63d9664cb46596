//! Signatures: HMAC (RFC 2104) and JSON web tokens signed with it (RFC 7515, 7518).

use ring::hmac::{self, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256, HMAC_SHA384, HMAC_SHA512};

use super::encode::Encoding;
use super::node::Work;
use super::tree::{Key, Node, Token};
use crate::script::{Context, StepFailure};

impl Key {
    pub(super) fn new(algorithm: hmac::Algorithm, key: Node) -> Self {
        match key.literal() {
            Some(key) => Self::Known(hmac::Key::new(algorithm, key.as_bytes())),
            None => Self::Text(algorithm, key),
        }
    }

    pub(super) fn is_known(&self) -> bool {
        matches!(self, Self::Known(_))
    }

    pub(super) fn sign(&self, ctx: &mut Context<'_>, work: &mut Work, text: &[u8]) -> Result<hmac::Tag, StepFailure> {
        Ok(match self {
            Self::Known(key) => hmac::sign(key, text),
            Self::Text(algorithm, key) => {
                let key = key.text(ctx, work)?;
                hmac::sign(&hmac::Key::new(*algorithm, key.as_bytes()), text)
            }
        })
    }
}

/// The algorithms of `hmac`.
pub(super) fn algorithm(name: &str) -> Option<hmac::Algorithm> {
    Some(match name {
        "sha1" => HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        "sha256" => HMAC_SHA256,
        "sha384" => HMAC_SHA384,
        "sha512" => HMAC_SHA512,
        _ => return None,
    })
}

/// The encodings of a signature.
pub(super) fn encoding(name: &str) -> Option<Encoding> {
    Some(match name {
        "hex" => Encoding::Hex,
        "base64" => Encoding::Base64,
        "base64url" => Encoding::Base64Url,
        _ => return None,
    })
}

impl Token {
    /// None if `algorithm` is not in RFC 7518, section 3.2, or if the claims are known and not a
    /// JSON object.
    pub(super) fn new(key: Node, claims: Node, algorithm: &str) -> Option<Self> {
        // {"alg":"HS256","typ":"JWT"} and its like.
        let (algorithm, header) = match algorithm {
            "HS256" => (HMAC_SHA256, "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."),
            "HS384" => (HMAC_SHA384, "eyJhbGciOiJIUzM4NCIsInR5cCI6IkpXVCJ9."),
            "HS512" => (HMAC_SHA512, "eyJhbGciOiJIUzUxMiIsInR5cCI6IkpXVCJ9."),
            _ => return None,
        };
        let is_object = |text| serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_ok();
        if !claims.literal().is_none_or(is_object) {
            return None;
        }
        Some(Self { header, key: Key::new(algorithm, key), claims })
    }

    pub(super) fn is_constant(&self) -> bool {
        self.key.is_known() && self.claims.literal().is_some()
    }

    pub(super) fn write(&self, ctx: &mut Context<'_>, work: &mut Work, out: &mut Vec<u8>) -> Result<(), StepFailure> {
        let start = out.len();
        out.extend_from_slice(self.header.as_bytes());
        let claims = self.claims.text(ctx, work)?;
        Encoding::Base64Url.write(claims.as_bytes(), out)?;
        let signature = self.key.sign(ctx, work, &out[start..])?;
        out.push(b'.');
        Encoding::Base64Url.write(signature.as_ref(), out)
    }
}
