//! The names of the checks, each spelt once, with what is demanded. How a check is seen, where it stands and what
//! to do about a failure is in the tables; whether a server passes is `evaluate`'s affair.

use crate::names::names;

names! {
    /// A check of the catalogue.
    pub enum CheckId {
        /// The answer to a request is labelled application/json or text/event-stream.
        InitContentType = "init.content-type",
        /// A JSON body in answer to a request is one object.
        InitSingleObject = "init.single-object",
        /// The member jsonrpc of a message is the string 2.0.
        EnvJsonrpc = "env.jsonrpc",
        /// A response carries the id of its request, with the same type.
        EnvIdEcho = "env.id-echo",
        /// A response has a result or an error, and exactly one of them.
        EnvResultXorError = "env.result-xor-error",
        /// A result is an object.
        EnvResultObject = "env.result-object",
        /// An error has an integer code and a string message.
        EnvErrorShape = "env.error-shape",
        /// An initialize result has protocolVersion, capabilities and serverInfo with name and version.
        InitRequiredFields = "init.required-fields",
        /// Optional members of an initialize result have their types where they stand.
        InitOptionalTypes = "init.optional-types",
        /// Capabilities that the schema knows are objects, and their flags are booleans.
        InitCapabilityTypes = "init.capability-types",
        /// The revision answered with is the one asked for, or another that the handshake has.
        InitVersionEcho = "init.version-echo",
        /// A revision that is not served is answered with another one, not with an error.
        InitVersionNoError = "init.version-no-error",
        /// A session id consists of visible ASCII characters.
        SessAscii = "sess.ascii",
        /// A session id cannot be guessed.
        SessStrength = "sess.strength",
        /// A stream that answers a request yields the response.
        SseHasResponse = "sse.has-response",
        /// A stream that answers a request ends after the response.
        SseTerminates = "sse.terminates",
        /// A stream begins with an event that has an id and empty data.
        SsePriming = "sse.priming",
        /// Before the client says it is initialized, the server asks for nothing but ping.
        SseNoEarlyRequests = "sse.no-early-requests",
        /// An event stream tells proxies not to buffer it.
        SseXAccel = "sse.x-accel",
        /// Messages are encoded in UTF-8.
        EncUtf8 = "enc.utf8",
        /// A refusal for want of credentials is HTTP 401.
        AuthRefusalIs401 = "auth.refusal-is-401",
        /// A 401 carries a challenge.
        AuthWwwAuthenticate = "auth.www-authenticate",
        /// The challenge names the resource metadata, or they stand at a well-known address.
        AuthResourceMetadataParam = "auth.resource-metadata-param",
        /// The challenge names the scope that is needed.
        AuthScopeParam = "auth.scope-param",
        /// The challenge names no error where no token was sent.
        AuthNoErrorWithoutCreds = "auth.no-error-without-creds",
        /// Neither the challenge nor the metadata ask for `offline_access`.
        AuthNoOfflineAccess = "auth.no-offline-access",
        /// What is gated is served over HTTPS.
        TlsHttps = "tls.https",
        /// A server without initialize names its revisions when it refuses one.
        ModernOnlyNamesVersions = "modern-only.names-versions",
        /// A server without initialize refuses one with HTTP 400.
        ModernOnlyStatus = "modern-only.status",
        /// A server sends no code of the reserved range but those that are defined.
        CodeReservedRange = "code.reserved-range",
        /// A new server does not use the codes -32000 to -32019.
        CodeLegacyRange = "code.legacy-range",
        /// A server of 2026-07-28 answers server/discover.
        DiscImplemented = "disc.implemented",
        /// The discover result has the resultType complete.
        DiscResultType = "disc.resultType",
        /// The discover result lists the revisions that are served, the one that was used among them.
        DiscSupportedVersions = "disc.supportedVersions",
        /// The discover result declares its capabilities as objects.
        DiscCapabilities = "disc.capabilities",
        /// The discover result says for how long it may be kept.
        DiscTtlMs = "disc.ttlMs",
        /// The discover result says who may keep it.
        DiscCacheScope = "disc.cacheScope",
        /// The result's _meta tells the server's name and version.
        DiscServerInfoMeta = "disc.serverInfo-meta",
        /// The result has the shape of the release, not that of a release candidate.
        DiscRcServerInfo = "disc.rc-serverInfo",
        /// A server without initialize gives out no session.
        DiscNoSession = "disc.no-session",
        /// A stream holds no requests of the server's.
        DiscNoServerRequests = "disc.no-server-requests",
        /// No log messages are sent to who did not ask for any.
        DiscNoLogMessages = "disc.no-log-messages",
        /// Names in _meta are well formed, and the reserved prefixes are the specification's.
        MetaKeyNames = "meta.key-names",
        /// Nothing deprecated is declared.
        DepFeatures = "dep.features",
        /// A notification that is accepted is answered with 202 and no body.
        Notif202 = "notif.202",
        /// A session can be ended by DELETE, or the DELETE is not allowed.
        DeleteOkOr405 = "delete.ok-or-405",
        /// A ping is answered with an empty result.
        PingEmptyResult = "ping.empty-result",
        /// A server that declares tools lists them.
        ToolsListWorks = "tools.list-works",
        /// A tool has a name and an input schema of type object.
        ToolsShape = "tools.shape",
        /// Input schemas are valid in their dialect.
        ToolsSchemaValid = "tools.schema-valid",
        /// Names of tools are short, plain and unique.
        ToolsNameRules = "tools.name-rules",
        /// An output schema is of type object.
        ToolsOutputSchema = "tools.output-schema",
        /// Parameters that go into headers are named and typed as the transport wants.
        ToolsXMcpHeader = "tools.x-mcp-header",
        /// The result of a list has resultType, ttlMs and cacheScope.
        ListCacheFields = "list.cache-fields",
        /// A cursor is a string.
        ListCursorType = "list.cursor-type",
        /// Tools come in the same order each time.
        ToolsDeterministic = "tools.deterministic",
        /// What is not declared is not implemented, and what is declared is.
        CapsMatch = "caps.match",
        /// A GET opens an event stream or is not allowed.
        GetSseOr405 = "get.sse-or-405",
        /// A server without initialize answers a GET with 405.
        Get405Modern = "get.405-modern",
        /// An HTTP+SSE stream begins by naming its endpoint.
        Sse24EndpointFirst = "sse24.endpoint-first",
        /// The resource metadata can be fetched.
        PrmFetch = "prm.fetch",
        /// The resource metadata are about this endpoint.
        PrmResourceMatch = "prm.resource-match",
        /// The resource metadata name an authorization server.
        PrmAuthorizationServers = "prm.authorization-servers",
        /// The authorization server publishes its metadata.
        AsMetadata = "as.metadata",
        /// The metadata name the issuer they were fetched for.
        AsIssuerMatch = "as.issuer-match",
        /// The authorization server shows that it supports PKCE.
        AsPkce = "as.pkce",
        /// The endpoints of the authorization server are HTTPS.
        AsHttps = "as.https",
        /// The authorization server takes client metadata documents.
        AsCimd = "as.cimd",
        /// The authorization server registers clients dynamically.
        AsDcr = "as.dcr",
        /// The authorization server names itself in its responses.
        AsIssParam = "as.iss-param",
        /// An unknown method is refused with -32601, under 404 in 2026-07-28.
        NegUnknownMethod = "neg.unknown-method",
        /// Methods that 2026-07-28 removed are unknown methods there.
        NegRemovedMethods = "neg.removed-methods",
        /// A revision that is not served is refused with -32022 under 400.
        NegUnsupportedVersion = "neg.unsupported-version",
        /// A header that contradicts the body is refused with -32020 under 400.
        NegHeaderMismatch = "neg.header-mismatch",
        /// A request without Mcp-Method is refused with -32020 under 400.
        NegMissingMcpMethod = "neg.missing-mcp-method",
        /// A server without initialize refuses a request without MCP-Protocol-Version.
        NegMissingVersionHeader = "neg.missing-version-header",
        /// A request without the required _meta is refused with -32602 under 400.
        NegMissingMeta = "neg.missing-meta",
        /// A request without clientInfo is served.
        NegNoClientInfoOk = "neg.no-clientInfo-ok",
        /// A revision header that makes no sense is refused with 400.
        NegBadVersionHeaderLegacy = "neg.bad-version-header-legacy",
        /// A request without the revision header counts as 2025-03-26.
        NegNoVersionHeaderLegacy = "neg.no-version-header-legacy",
        /// A request without the session that was given is refused with 400.
        NegNoSession400 = "neg.no-session-400",
        /// A session that has ended is answered with 404.
        NegTerminated404 = "neg.terminated-404",
        /// A cursor that was never given is refused with -32602.
        NegBadCursor = "neg.bad-cursor",
        /// What is no JSON is refused with -32700.
        NegParseError = "neg.parse-error",
        /// A foreign Origin is refused with 403.
        NegOrigin403 = "neg.origin-403",
        /// A token that is not valid is refused with 401.
        NegInvalidToken401 = "neg.invalid-token-401",
        /// A session header is ignored where there are no sessions.
        NegSessionHeaderIgnored = "neg.session-header-ignored",
    }
}
