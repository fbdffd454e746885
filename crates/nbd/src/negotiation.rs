//! The option negotiation before the first request, without I/O.

use super::export::Export;
use super::wire::{
    self, ClientFlags, ClientOption, ExportQuery, Malformed, info, option, option_reply,
};

/// The state of TLS in a negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsPhase {
    /// TLS is not available.
    Off,
    /// The client may start TLS.
    Offered,
    /// The client must start TLS before anything else.
    Required,
    /// TLS is active.
    On,
}

/// The next step after an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Receive another option.
    Option,
    /// Perform the TLS handshake, then negotiate options from the beginning.
    StartTls,
    /// Begin the transmission phase.
    Requests {
        /// Whether reads get structured replies.
        structured: bool,
    },
    /// End the connection.
    Disconnect,
}

/// A negotiation in progress.
pub struct Negotiation<'a> {
    export: &'a Export,
    client: ClientFlags,
    tls: TlsPhase,
    structured: bool,
}

impl<'a> Negotiation<'a> {
    /// Starts a negotiation.
    pub fn new(export: &'a Export, client: ClientFlags, tls: TlsPhase) -> Self {
        Self { export, client, tls, structured: false }
    }

    /// Handles the option `code` with its `data`, and appends the reply to `out`.
    ///
    /// # Errors
    /// If the connection must end.
    pub fn take(&mut self, code: u32, data: &[u8], out: &mut Vec<u8>) -> Result<Next, Malformed> {
        if !self.client.fixed_newstyle && code != option::EXPORT_NAME {
            return Err(Malformed("an option from a client without fixed newstyle"));
        }
        let mut reply = |reply, parts: &[&[u8]]| {
            wire::push_option_reply(out, code, reply, parts);
            Ok(Next::Option)
        };
        let Ok(parsed) = ClientOption::parse(code, data) else {
            return reply(option_reply::ERR_INVALID, &[]);
        };
        let may_proceed = self.tls != TlsPhase::Required;
        match parsed {
            ClientOption::Abort => {
                reply(option_reply::ACK, &[])?;
                Ok(Next::Disconnect)
            }
            ClientOption::StartTls => self.start_tls(code, out),
            ClientOption::ExportName(name) => self.export_name(name, out),
            _ if !may_proceed => reply(option_reply::ERR_TLS_REQD, &[]),
            ClientOption::List => {
                let Export { name, description, .. } = self.export;
                let name_bytes = u32::try_from(name.len()).expect("NbdOptions were checked");
                let parts = [&name_bytes.to_be_bytes(), name.as_bytes(), description.as_bytes()];
                reply(option_reply::SERVER, &parts)?;
                reply(option_reply::ACK, &[])
            }
            ClientOption::StructuredReply => {
                self.structured = true;
                reply(option_reply::ACK, &[])
            }
            ClientOption::Info(query) => self.describe(code, &query, out),
            ClientOption::Go(query) => {
                self.describe(code, &query, out)?;
                let requests = Next::Requests { structured: self.structured };
                Ok(if self.export.answers_to(query.name) { requests } else { Next::Option })
            }
            ClientOption::Unknown => reply(option_reply::ERR_UNSUP, &[]),
        }
    }

    fn start_tls(&mut self, code: u32, out: &mut Vec<u8>) -> Result<Next, Malformed> {
        let (reply, next) = match self.tls {
            TlsPhase::Offered | TlsPhase::Required => (option_reply::ACK, Next::StartTls),
            TlsPhase::Off => (option_reply::ERR_POLICY, Next::Option),
            TlsPhase::On => (option_reply::ERR_INVALID, Next::Option),
        };
        wire::push_option_reply(out, code, reply, &[]);
        Ok(next)
    }

    /// Handles `EXPORT_NAME`. The protocol has no error reply to this option, so a refusal must
    /// disconnect.
    fn export_name(&self, name: &[u8], out: &mut Vec<u8>) -> Result<Next, Malformed> {
        if self.tls == TlsPhase::Required {
            return Err(Malformed("a client did not start TLS, which is required"));
        }
        if !self.export.answers_to(name) {
            return Err(Malformed("the client requested an unknown export"));
        }
        let flags = self.export.flags(self.structured);
        wire::push_export_name_reply(out, self.export.bytes, flags, self.client.no_zeroes);
        Ok(Next::Requests { structured: self.structured })
    }

    fn describe(
        &self,
        code: u32,
        query: &ExportQuery<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Next, Malformed> {
        let mut reply = |reply, parts: &[&[u8]]| wire::push_option_reply(out, code, reply, parts);
        let export = self.export;
        if !export.answers_to(query.name) {
            reply(option_reply::ERR_UNKNOWN, &[]);
            return Ok(Next::Option);
        }
        let mut push_info = |kind: u16, parts: [&[u8]; 3]| {
            let [first, second, third] = parts;
            reply(option_reply::INFO, &[&kind.to_be_bytes(), first, second, third]);
        };
        let flags = export.flags(self.structured);
        push_info(info::EXPORT, [&export.bytes.to_be_bytes(), &flags.to_be_bytes(), &[]]);
        // Sent even if the client did not request it, because the request limit differs from the
        // protocol's default.
        push_info(
            info::BLOCK_SIZE,
            [
                &1_u32.to_be_bytes(),
                &export.preferred_block_bytes().to_be_bytes(),
                &export.request_bytes_max.to_be_bytes(),
            ],
        );
        if query.wants_name {
            push_info(info::NAME, [export.name.as_bytes(), &[], &[]]);
        }
        if query.wants_description {
            push_info(info::DESCRIPTION, [export.description.as_bytes(), &[], &[]]);
        }
        reply(option_reply::ACK, &[]);
        Ok(Next::Option)
    }
}
