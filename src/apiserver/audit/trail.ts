/** Audit events of requests. Source: audit.k8s.io/v1 Event; k8s.io/apiserver/pkg/audit, filters/audit.go. */

import type { JsonObject, JsonValue } from '../../api/meta/object.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import { peerAddress } from '../../base/addresses/addresses.ts';
import { parseJson } from '../../base/json/json.ts';
import { omitEmpty, omitUndefined } from '../../base/json/omit-fields.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import { microTimestamp } from '../../base/time/timestamps.ts';
import type { Decision } from '../core/authorization/types.ts';
import type { RequestInfo } from '../http/request-info.ts';
import type { ConnectionInfo, IncomingMessage } from '../port.ts';
import { AUDIT_LEVELS, type AuditDecision, type AuditPolicy, type AuditStage, decideAudit } from './policy.ts';
import type { AuditSink } from './port.ts';

/** Larger bodies are not recorded, because parsing them would block the event loop. */
const MAX_BODY = 1024 * 1024;
const TRUNCATED = 'audit.k8s.io/truncated';
const MAX_ID = 64;
const MAX_AGENT = 1024;

export interface AuditSettings {
  readonly policy: AuditPolicy;
  readonly sinks: readonly AuditSink[];
  /** Called for an event that is dropped because it exceeds the sink's limit even without bodies. */
  readonly tooLarge?: (auditId: string) => void;
}

interface Subject {
  readonly request: IncomingMessage;
  readonly connection: ConnectionInfo;
  readonly info: RequestInfo;
  /** The user before impersonation. */
  readonly authenticated: UserInfo;
}

interface AuditCounts {
  events: number;
  rejected: number;
  readonly levels: Record<AuditDecision['level'], number>;
}

export class AuditTrail {
  readonly #settings: AuditSettings;
  readonly #clock: Clock;
  readonly #random: RandomSource;
  readonly #counts: AuditCounts = {
    events: 0,
    rejected: 0,
    levels: { None: 0, Metadata: 0, Request: 0, RequestResponse: 0 },
  };

  constructor(settings: AuditSettings, clock: Clock, random: RandomSource) {
    this.#settings = settings;
    this.#clock = clock;
    this.#random = random;
  }

  /** Starts the record of a request. Returns undefined if the policy records nothing for it. */
  begin(subject: Subject): AuditRecord | undefined {
    const decision = decideAudit(this.#settings.policy, subject.authenticated, subject.info);
    this.#counts.levels[decision.level] += 1;
    if (decision.level === 'None') return undefined;
    return new AuditRecord(subject, decision, this.#settings, this.#clock, this.#random.uuid(), this.#counts);
  }

  /** Metrics in text format, without a trailing line break. Source: k8s.io/apiserver/pkg/audit/metrics.go. */
  metrics(): string {
    const { events, rejected, levels } = this.#counts;
    const prefix = 'apiserver_audit';
    return [
      `# HELP ${prefix}_event_total Counter of audit events generated and sent to the audit backend.`,
      `# TYPE ${prefix}_event_total counter`,
      `${prefix}_event_total ${events}`,
      `# HELP ${prefix}_level_total Counter of policy levels for audit events (1 per request).`,
      `# TYPE ${prefix}_level_total counter`,
      ...AUDIT_LEVELS.map((level) => `${prefix}_level_total{level="${level}"} ${levels[level]}`),
      `# HELP ${prefix}_requests_rejected_total Counter of apiserver requests rejected due to an error in audit logging backend.`,
      `# TYPE ${prefix}_requests_rejected_total counter`,
      `${prefix}_requests_rejected_total ${rejected}`,
    ].join('\n');
  }

  async close(): Promise<void> {
    await Promise.all(this.#settings.sinks.map((sink) => sink.close()));
  }
}

export class AuditRecord {
  readonly id: string;
  readonly #subject: Subject;
  readonly #decision: AuditDecision;
  readonly #settings: AuditSettings;
  readonly #clock: Clock;
  readonly #receivedMs: number;
  readonly #counts: AuditCounts;
  readonly #annotations: Record<string, string> = {};
  readonly #reference: Record<string, string> = {};
  #impersonated: UserInfo | undefined;
  #constraint = '';
  #request: string | undefined;
  #response: string | undefined;
  #failure: JsonObject | undefined;
  #started = false;
  #completed = false;

  constructor(
    subject: Subject,
    decision: AuditDecision,
    settings: AuditSettings,
    clock: Clock,
    id: string,
    counts: AuditCounts,
  ) {
    this.#counts = counts;
    const given = subject.request.headers['audit-id'];
    this.id = typeof given === 'string' && given !== '' ? given.slice(0, MAX_ID) : id;
    this.#subject = subject;
    this.#decision = decision;
    this.#settings = settings;
    this.#clock = clock;
    this.#receivedMs = clock.nowMs();
  }

  /** Reports whether responses must wait for their events. */
  get blocks(): boolean {
    return this.#settings.sinks.some(({ blocks }) => blocks === true);
  }

  /**
   * Records stage RequestReceived. If the result is asynchronous, the request must wait, and must be rejected when it
   * resolves to false.
   */
  received(): Promise<boolean> | undefined {
    return this.#emit('RequestReceived', undefined);
  }

  /** Ends the record of a request that is rejected because it could not be recorded. */
  abandon(): void {
    this.#counts.rejected += 1;
    this.#started = true;
    this.#completed = true;
  }

  /**
   * Records impersonation. `constraint`: the verb of constrained impersonation that allowed it; '' for the plain verb.
   */
  impersonates(user: UserInfo, constraint: string): void {
    this.#impersonated = user;
    this.#constraint = constraint;
  }

  /** Records the authorization decision. Source: k8s.io/apiserver/pkg/endpoints/filters/authorization.go. */
  decided({ allowed, reason, error }: Decision): void {
    const failed = !allowed && error !== undefined;
    if (!failed) this.#annotations['authorization.k8s.io/decision'] = allowed ? 'allow' : 'forbid';
    this.#annotations['authorization.k8s.io/reason'] = failed ? 'internal error' : reason;
  }

  /** Adds an annotation. The first value of a key is kept. */
  annotate(key: string, value: string, level: 'Metadata' | 'Request' = 'Metadata'): void {
    if (this.#atLeast(level) && !Object.hasOwn(this.#annotations, key)) this.#annotations[key] = value;
  }

  /** Records the decoded request body, which also contains the name of a created object. */
  sent(document: JsonValue | object): void {
    const { metadata } = document as { metadata?: Record<string, unknown> };
    for (const field of ['name', 'namespace', 'uid', 'resourceVersion']) {
      const value = metadata?.[field];
      if (typeof value === 'string' && value !== '') this.#reference[field] = value;
    }
    if (this.#atLeast('Request') && this.#request === undefined) this.#request = this.#body(JSON.stringify(document));
  }

  /** Reports whether the policy requires response bodies. */
  get logsResponses(): boolean {
    return this.#atLeast('RequestResponse');
  }

  /** Records the JSON of the response. Only the first call counts. */
  answered(json: Buffer): void {
    if (!this.logsResponses || this.#response !== undefined) return;
    if (json.length > MAX_BODY) this.#annotations[TRUNCATED] = 'true';
    else this.#response = this.#body(json.toString('utf8'));
  }

  answeredInParts(length: number, parts: readonly Buffer[]): void {
    if (length > MAX_BODY) this.#annotations[TRUNCATED] = 'true';
    else this.answered(Buffer.concat(parts, length));
  }

  failed(status: object): void {
    this.#failure = status as JsonObject;
  }

  /**
   * Records stage ResponseStarted of a long-running request. If the result is asynchronous, the response must wait
   * until it resolves.
   */
  started(code: number): Promise<boolean> | undefined {
    if (this.#started) return undefined;
    this.#started = true;
    return this.#emit('ResponseStarted', code);
  }

  /** Records stage ResponseComplete. If the result is asynchronous, the response must not end before it resolves. */
  complete(code: number): Promise<boolean> | undefined {
    if (this.#completed) return undefined;
    this.#completed = true;
    return this.#emit('ResponseComplete', code);
  }

  #atLeast(level: AuditDecision['level']): boolean {
    return AUDIT_LEVELS.indexOf(this.#decision.level) >= AUDIT_LEVELS.indexOf(level);
  }

  /** A body on one line, without managed fields if the policy omits them. Undefined if it is too large or not JSON. */
  #body(json: string): string | undefined {
    if (json.length > MAX_BODY) {
      this.#annotations[TRUNCATED] = 'true';
      return undefined;
    }
    const line = json.trimEnd();
    if (!this.#decision.omitManagedFields && !line.includes('\n')) return line;
    try {
      const value = parseJson(json) as JsonValue;
      if (this.#decision.omitManagedFields) withoutManagedFields(value);
      return JSON.stringify(value);
    } catch {
      return undefined;
    }
  }

  #emit(stage: AuditStage, code: number | undefined): Promise<boolean> | undefined {
    if (this.#decision.omitStages.has(stage)) return undefined;
    this.#counts.events += 1;
    const whole = this.#line(stage, code, true);
    let pending: Promise<boolean> | undefined;
    for (const sink of this.#settings.sinks) {
      const line = this.#within(sink.maxEventBytes, whole, () => this.#line(stage, code, false));
      const kept = line === undefined ? undefined : sink.accept(line);
      if (kept === undefined) continue;
      const others = pending;
      pending = others === undefined ? kept : others.then((before) => kept.then((now) => before && now));
    }
    return pending;
  }

  /** The event as it fits into the limit of a sink; undefined if it does not fit even without bodies. */
  #within(limit: number | undefined, whole: string, withoutBodies: () => string): string | undefined {
    if (limit === undefined || Buffer.byteLength(whole) <= limit) return whole;
    const short = this.#atLeast('Request') ? withoutBodies() : whole;
    if (Buffer.byteLength(short) <= limit) return short;
    this.#settings.tooLarge?.(this.id);
    return undefined;
  }

  /** Serializes the event with fields in upstream's order. Bodies are already JSON. */
  #line(stage: AuditStage, code: number | undefined, bodies: boolean): string {
    const annotations = bodies ? this.#annotations : { ...this.#annotations, [TRUNCATED]: 'true' };
    const { request, connection, info, authenticated } = this.#subject;
    const head = JSON.stringify({
      kind: 'Event',
      apiVersion: 'audit.k8s.io/v1',
      level: this.#decision.level,
      auditID: this.id,
      stage,
      requestURI: uriOf(request),
      verb: info.verb,
      user: userOf(authenticated),
      ...(this.#impersonated === undefined ? {} : { impersonatedUser: userOf(this.#impersonated) }),
      ...(this.#constraint === '' ? {} : { authenticationMetadata: { impersonationConstraint: this.#constraint } }),
      sourceIPs: sourcesOf(request, connection),
      ...(request.headers['user-agent'] === undefined
        ? {}
        : { userAgent: request.headers['user-agent'].slice(0, MAX_AGENT) }),
      ...(info.resource ? { objectRef: this.#objectReference(info) } : {}),
      ...(code === undefined ? {} : { responseStatus: this.#status(code) }),
    });
    const tail = JSON.stringify({
      requestReceivedTimestamp: microTimestamp(this.#receivedMs),
      stageTimestamp: microTimestamp(this.#clock.nowMs()),
      ...(Object.keys(annotations).length === 0 || stage === 'RequestReceived' ? {} : { annotations }),
    });
    const parts = [head.slice(0, -1)];
    if (bodies && stage !== 'RequestReceived' && this.#request !== undefined)
      parts.push(`"requestObject":${this.#request}`);
    if (bodies && stage === 'ResponseComplete' && this.#response !== undefined)
      parts.push(`"responseObject":${this.#response}`);
    parts.push(tail.slice(1));
    return parts.join(',');
  }

  #objectReference(info: RequestInfo & { resource: true }): JsonObject {
    const known = this.#reference;
    const namespace = info.namespace === '' ? known['namespace'] : info.namespace;
    const name = info.name === '' ? known['name'] : info.name;
    return {
      resource: info.plural,
      ...omitUndefined({ namespace, name, uid: known['uid'] }),
      ...omitEmpty({ apiGroup: info.group }),
      apiVersion: info.version,
      ...omitUndefined({ resourceVersion: known['resourceVersion'] }),
      ...omitEmpty({ subresource: info.subresource }),
    };
  }

  #status(code: number): JsonObject {
    const { status, message, reason, details } = (this.#failure ?? {}) as Record<string, JsonValue | undefined>;
    return { metadata: {}, ...omitUndefined({ status, message, reason, details }), code };
  }
}

function userOf({ name, uid, groups, extra }: UserInfo): JsonObject {
  const more = Object.entries(extra ?? {});
  return {
    username: name,
    ...(uid === undefined ? {} : { uid }),
    groups: [...groups],
    ...(more.length === 0 ? {} : { extra: Object.fromEntries(more.map(([key, values]) => [key, [...values]])) }),
  };
}

/** Source addresses: the addresses that proxies claim, then the address of the connection. */
function sourcesOf(request: IncomingMessage, connection: ConnectionInfo): string[] {
  const forwarded = request.headers['x-forwarded-for'];
  const claimed = (Array.isArray(forwarded) ? forwarded.join(',') : (forwarded ?? ''))
    .split(',')
    .map((each) => each.trim())
    .filter((each) => /^[0-9a-fA-F:.]{3,45}$/.test(each));
  const own = peerAddress(connection.remoteAddress);
  return claimed.at(-1) === own ? claimed : [...claimed, own];
}

/** Masks tokens, which some clients send in the query string. */
function uriOf(request: IncomingMessage): string {
  return (request.url ?? '').replaceAll(/([?&](?:access_token|token|bearer|code)=)[^&]*/gi, '$1…');
}

/** Removes managed fields from an object or from the items of a list. */
function withoutManagedFields(value: JsonValue): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
  const { metadata, items } = value;
  if (typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata)) delete metadata['managedFields'];
  if (Array.isArray(items)) for (const item of items) withoutManagedFields(item);
}
