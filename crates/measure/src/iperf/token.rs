//! Proof that a client knows a shared token, without the token on the wire.
//!
//! iperf3's protocol lets the server send nothing before the parameters, so there is no challenge to answer: the client signs its own
//! fresh cookie and the time of day with HMAC-SHA-256 (RFC 2104). A server takes a proof once, and only for a few minutes around its own
//! time. It protects who may start a test, not the data, which says nothing.

use std::collections::HashMap;

use ring::hmac;
use serde::{Deserialize, Serialize};

use super::wire::Cookie;

/// How far the two clocks may be apart, in seconds.
pub const MOST_SKEW_S: u64 = 300;
/// The shortest token: shorter ones can be guessed from one recorded proof.
pub const SHORTEST: usize = 16;

/// A shared secret.
#[derive(Clone)]
pub struct Token(hmac::Key);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// What a client sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Seconds since 1970.
    pub at_s: u64,
    /// HMAC-SHA-256 in hexadecimal.
    pub mac: String,
}

/// Why a proof was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The token is too short.
    #[error("a token has at least {SHORTEST} characters")]
    TooShort,
    /// The client sent none.
    #[error("this server wants a token (--token-file), which iperf3 can't send")]
    Missing,
    /// It was made with another token.
    #[error("the token is not this server's")]
    Wrong,
    /// The clocks are too far apart.
    #[error(
        "the clocks of client and server are {apart_s} s apart, and a token's proof holds for {MOST_SKEW_S} s: set the clocks"
    )]
    Clock {
        /// How far.
        apart_s: u64,
    },
    /// It came before.
    #[error("this proof of the token was used before")]
    Used,
}

impl Token {
    /// From the text of a file; blanks at both ends do not count.
    ///
    /// # Errors
    /// [`TokenError::TooShort`].
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        if text.len() < SHORTEST {
            return Err(TokenError::TooShort);
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes())))
    }

    /// Signs a test.
    pub fn prove(&self, cookie: &Cookie, at_s: u64) -> Proof {
        let tag = hmac::sign(&self.0, &message(cookie, at_s));
        Proof { at_s, mac: tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect() }
    }

    fn verifies(&self, cookie: &Cookie, proof: &Proof) -> bool {
        let digits = proof.mac.as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let mac: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
        mac.is_some_and(|mac| hmac::verify(&self.0, &message(cookie, proof.at_s), &mac).is_ok())
    }
}

fn message(cookie: &Cookie, at_s: u64) -> Vec<u8> {
    [b"linerate bench 1\0".as_slice(), &cookie.0, &at_s.to_be_bytes()].concat()
}

/// A server's side: its token and the proofs taken lately.
#[derive(Debug)]
pub struct Verifier {
    token: Token,
    used: HashMap<String, u64>,
}

impl Verifier {
    /// With nothing taken yet.
    pub fn new(token: Token) -> Self {
        Self { token, used: HashMap::new() }
    }

    /// Takes a proof or says why not; `now_s` is the time of day.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn take(&mut self, cookie: &Cookie, proof: Option<&Proof>, now_s: u64) -> Result<(), TokenError> {
        let proof = proof.ok_or(TokenError::Missing)?;
        // Before the clock, so that only who knows the token learns about the server's clock, and only valid proofs are remembered.
        if !self.token.verifies(cookie, proof) {
            return Err(TokenError::Wrong);
        }
        let apart_s = proof.at_s.abs_diff(now_s);
        if apart_s > MOST_SKEW_S {
            return Err(TokenError::Clock { apart_s });
        }
        self.used.retain(|_, until| *until >= now_s);
        // A proof can be used until the skew on the other side of its time is over too.
        match self.used.insert(proof.mac.to_ascii_lowercase(), proof.at_s + MOST_SKEW_S) {
            Some(_) => Err(TokenError::Used),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn token(text: &str) -> Token {
        Token::new(text).unwrap()
    }

    fn cookie() -> Cookie {
        Cookie::from_random([7; 36])
    }

    #[test]
    fn a_proof_is_taken_once() {
        let mut verifier = Verifier::new(token("correct horse battery"));
        let proof = token(" correct horse battery\n").prove(&cookie(), NOW);
        assert_eq!(verifier.take(&cookie(), Some(&proof), NOW + 200), Ok(()));
        assert_eq!(verifier.take(&cookie(), Some(&proof), NOW + 300), Err(TokenError::Used));
        let shouted = Proof { mac: proof.mac.to_ascii_uppercase(), ..proof };
        assert_eq!(verifier.take(&cookie(), Some(&shouted), NOW), Err(TokenError::Used));
    }

    #[test]
    fn another_token_another_test_another_time_or_none_is_refused() {
        let mut verifier = Verifier::new(token("correct horse battery"));
        let right = token("correct horse battery").prove(&cookie(), NOW);
        assert_eq!(verifier.take(&cookie(), None, NOW), Err(TokenError::Missing));
        let wrong = token("incorrect horse battery").prove(&cookie(), NOW);
        assert_eq!(verifier.take(&cookie(), Some(&wrong), NOW), Err(TokenError::Wrong));
        assert_eq!(verifier.take(&Cookie::from_random([8; 36]), Some(&right), NOW), Err(TokenError::Wrong));
        let later = Proof { at_s: NOW + 1, ..right.clone() };
        assert_eq!(verifier.take(&cookie(), Some(&later), NOW), Err(TokenError::Wrong));
        assert_eq!(verifier.take(&cookie(), Some(&right), NOW + 301), Err(TokenError::Clock { apart_s: 301 }));
        let garbage = Proof { mac: "zz\u{fc}".into(), ..right };
        assert_eq!(verifier.take(&cookie(), Some(&garbage), NOW), Err(TokenError::Wrong));
    }

    #[test]
    fn a_token_that_can_be_guessed_is_refused() {
        assert_eq!(Token::new("  short  ").unwrap_err(), TokenError::TooShort);
    }
}
