//! SCRAM-SHA-256 (RFC 5802, RFC 7677) without channel binding: both sides prove that they know the
//! account, and neither sends the password. The password is used unchanged, without Unicode
//! normalization (SASLprep): ASCII passwords, and most others, are normalized already.

use std::num::NonZeroU32;
use std::sync::PoisonError;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::rand::SecureRandom as _;
use ring::{digest, hmac, rand};

use crate::database::event::Error;
use crate::database::login::Login;
use crate::database::salted::{SaltedKeys, sign};

pub(crate) const NAME: &str = "SCRAM-SHA-256";

/// No channel binding, and no other account to act for.
const HEADER: &str = "n,,";

/// The header in base64, as the second message repeats it.
const BINDING: &str = "biws";

/// PostgreSQL's default is 4,096. A server that asks for more than this would delay all other
/// connections.
const MAX_ITERATIONS: u32 = 1_000_000;

/// Fewest iterations by RFC 7677. With fewer, an impostor guesses the password from one login.
pub(crate) const FEWEST_ITERATIONS: u32 = 4_096;

/// A login whose first message is ready.
pub(crate) struct Scram {
    /// The user's name as the first message has it; PostgreSQL ignores it there, and gets none.
    name: String,
    nonce: String,
    /// Fewest iterations that the server may ask for.
    iterations_min: u32,
}

/// What the server has to prove.
pub(crate) struct Proof {
    signed: String,
    key: hmac::Key,
}

impl Scram {
    /// A login of `user`, which may be empty where the server knows the name already.
    pub(crate) fn new(user: &str, iterations_min: u32) -> Result<Self, Error> {
        let mut nonce = [0; 18];
        rand::SystemRandom::new().fill(&mut nonce).map_err(|_| Error::NoRandomNumbers)?;
        let name = user.replace('=', "=3D").replace(',', "=2C");
        Ok(Self { name, nonce: BASE64.encode(nonce), iterations_min })
    }

    /// The first message.
    pub(crate) fn first(&self) -> String {
        format!("{HEADER}{}", self.bare())
    }

    fn bare(&self) -> String {
        format!("n={},r={}", self.name, self.nonce)
    }

    /// The second message, in reply to the server's first.
    pub(crate) fn second(&self, said: &[u8], login: &Login) -> Result<(String, Proof), Error> {
        let broken = Error::Protocol("a message of SCRAM that cannot be read");
        let said = str::from_utf8(said).map_err(|_| broken.clone())?;
        let mut parts = said.split(',');
        let mut part = |name| parts.next().and_then(|part| part.strip_prefix(name)).ok_or(broken.clone());
        let (nonce, salt, iterations) = (part("r=")?, part("s=")?, part("i=")?);
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(Error::ServerNotProved);
        }
        let salt = BASE64.decode(salt).map_err(|_| broken.clone())?;
        let iterations: NonZeroU32 = iterations.parse().map_err(|_| broken)?;
        if iterations.get() > MAX_ITERATIONS {
            return Err(Error::TooLarge("the number of SCRAM iterations"));
        }
        if iterations.get() < self.iterations_min {
            return Err(Error::Refused("a SCRAM login with fewer than 4096 iterations"));
        }
        let mut kept = login.salted.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.take().filter(|kept| kept.are_of(&salt, iterations));
        let salted = kept
            .insert(known.unwrap_or_else(|| SaltedKeys::new(login.password.reveal().as_bytes(), &salt, iterations)));
        let without_proof = format!("c={BINDING},r={nonce}");
        let signed = format!("{},{said},{without_proof}", self.bare());
        let signature = sign(digest::digest(&digest::SHA256, &*salted.client).as_ref(), signed.as_bytes());
        let proof: Vec<u8> = salted.client.iter().zip(signature).map(|(key, byte)| key ^ byte).collect();
        let key = hmac::Key::new(hmac::HMAC_SHA256, &*salted.server);
        Ok((format!("{without_proof},p={}", BASE64.encode(proof)), Proof { signed, key }))
    }
}

impl Proof {
    /// Checks whether the server knows the account, too.
    pub(crate) fn check(&self, said: &[u8]) -> Result<(), Error> {
        let signature = said.strip_prefix(b"v=").and_then(|signature| BASE64.decode(signature).ok());
        let signature = signature.ok_or(Error::ServerNotProved)?;
        hmac::verify(&self.key, self.signed.as_bytes(), &signature).map_err(|_| Error::ServerNotProved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::login::Secret;

    /// The example of RFC 7677, section 3. Its first message contains the user's name, which
    /// PostgreSQL's does not, so the proofs are checked from the server's side: with what it
    /// stores.
    #[test]
    fn both_sides_are_proved() {
        let login = Login::new("user".to_owned(), Secret::new("pencil".to_owned()), None);
        let nonce = "rOprNGfwEbeRWgbNEkqO".to_owned();
        let scram = Scram { name: String::new(), nonce, iterations_min: FEWEST_ITERATIONS };
        assert_eq!(scram.first(), "n,,n=,r=rOprNGfwEbeRWgbNEkqO");
        let said = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let (second, proof) = scram.second(said.as_bytes(), &login).unwrap();
        let (without_proof, shown) = second.split_once(",p=").unwrap();
        assert_eq!(without_proof, "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0");

        let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let salted = SaltedKeys::new(b"pencil", &salt, NonZeroU32::new(4096).unwrap());
        // With the RFC's first message the server's signature is the RFC's.
        let of_rfc = format!("n=user,r=rOprNGfwEbeRWgbNEkqO,{said},{without_proof}");
        let shown_by_rfc = "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
        assert_eq!(BASE64.encode(sign(&*salted.server, of_rfc.as_bytes())), shown_by_rfc);
        let stored = digest::digest(&digest::SHA256, &*salted.client);
        let client = |signed: &str, shown: &str| -> Vec<u8> {
            let signature = sign(stored.as_ref(), signed.as_bytes());
            BASE64.decode(shown).unwrap().iter().zip(signature).map(|(a, b)| a ^ b).collect()
        };
        assert_eq!(client(&of_rfc, "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="), *salted.client);
        assert_eq!(client(&proof.signed, shown), *salted.client);

        let right = format!("v={}", BASE64.encode(sign(&*salted.server, proof.signed.as_bytes())));
        assert_eq!(proof.check(right.as_bytes()), Ok(()));
        for wrong in [&format!("v={shown_by_rfc}"), "v=", "e=other-error", "", &right[..right.len() - 4]] {
            assert_eq!(proof.check(wrong.as_bytes()), Err(Error::ServerNotProved));
        }
        // The second connection finds the keys, another salt does not.
        assert!(login.salted.lock().unwrap().is_some());
        assert_eq!(scram.second(said.as_bytes(), &login).unwrap().0, second);
        let other = said.replace("W22Z", "W22Y");
        let new = Login::new("user".to_owned(), Secret::new("pencil".to_owned()), None);
        let of = |login| scram.second(other.as_bytes(), login).unwrap().0;
        assert_eq!(of(&login), of(&new));
        assert!(!format!("{login:?}").contains("pencil"));
    }

    /// The whole example, with the user's name in the first message as MongoDB wants it.
    #[test]
    fn the_example_of_the_rfc() {
        let login = Login::new("user".to_owned(), Secret::new("pencil".to_owned()), None);
        let nonce = "rOprNGfwEbeRWgbNEkqO".to_owned();
        let scram = Scram { name: "user".to_owned(), nonce, iterations_min: FEWEST_ITERATIONS };
        let said = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let (second, proof) = scram.second(said.as_bytes(), &login).unwrap();
        assert!(second.ends_with(",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="), "{second}");
        assert_eq!(proof.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="), Ok(()));
        assert_eq!(Scram::new("a=b,c", 1).unwrap().name, "a=3Db=2Cc", "neither ends the name");
    }

    #[test]
    fn a_server_that_cheats() {
        let login = Login::new("user".to_owned(), Secret::new("canary".to_owned()), None);
        let scram = Scram { name: String::new(), nonce: "abc".to_owned(), iterations_min: 1 };
        let second = |said: &str| scram.second(said.as_bytes(), &login).map(|_| ()).unwrap_err();
        assert_eq!(second("r=abd1,s=AAAA,i=4096"), Error::ServerNotProved);
        assert_eq!(second("r=abc,s=AAAA,i=4096"), Error::ServerNotProved);
        assert_eq!(second("r=abc1,s=AAAA,i=4000000000"), Error::TooLarge("the number of SCRAM iterations"));
        for said in ["", "r=abc1", "m=x,r=abc1,s=AAAA,i=1", "r=abc1,s=*,i=1", "r=abc1,s=AAAA,i=0", "r=abc1,s=AAAA,i=-1"]
        {
            assert!(matches!(second(said), Error::Protocol(_)), "{said}");
        }
    }

    /// PostgreSQL lets its administrator choose fewer; MongoDB does not.
    #[test]
    fn fewer_iterations_than_the_rfc_asks_for() {
        let login = Login::new("user".to_owned(), Secret::new("canary".to_owned()), None);
        let second = |iterations_min, count: u32| {
            let scram = Scram { name: String::new(), nonce: "abc".to_owned(), iterations_min };
            scram.second(format!("r=abc1,s=AAAA,i={count}").as_bytes(), &login).map(|_| ())
        };
        let refused = Err(Error::Refused("a SCRAM login with fewer than 4096 iterations"));
        assert_eq!(second(FEWEST_ITERATIONS, 4_095), refused);
        assert_eq!(second(FEWEST_ITERATIONS, 1), refused);
        assert_eq!(second(FEWEST_ITERATIONS, 4_096), Ok(()));
        assert_eq!(second(1, 100), Ok(()));
    }
}
