/**
 * Publishes the client and request-header CAs for aggregated API servers in
 * kube-system/extension-apiserver-authentication. CAs of other API servers stay in the config map until they expire.
 * Source: k8s.io/kubernetes/pkg/controlplane/controller/clusterauthenticationtrust.
 */
import { X509Certificate } from 'node:crypto';
import type { ConfigMap } from '../../api/generated/core/v1.ts';
import { semanticEqual } from '../../api/meta/equality.ts';
import { isApiError } from '../../api/meta/status.ts';
import { messageOf } from '../../base/errors.ts';
import { ownRequest } from '../bootstrap/index.ts';
import type { ApiServerConfig, CertificateSettings } from '../config/server-config.ts';
import type { LoopContext, ServerContext, WriteContext } from '../rest/context.ts';
import { Work } from '../rest/name-queue.ts';
import { followKind } from '../rest/watches/follow.ts';
import { createObject } from '../rest/writes/create.ts';
import { updateObject } from '../rest/writes/update.ts';
import type { CacheEvent } from '../watch-cache/event-window.ts';

type AuthenticationMapContext = WriteContext & LoopContext & Pick<ServerContext, 'certificates'>;

const NAMESPACE = 'kube-system';
const NAME = 'extension-apiserver-authentication';
const BUNDLES: ReadonlySet<string> = new Set(['client-ca-file', 'requestheader-client-ca-file']);

export class AuthenticationMap {
  readonly #context: AuthenticationMapContext;
  readonly #work: Work;
  #isFollowing = false;

  constructor(context: AuthenticationMapContext) {
    this.#context = context;
    this.#work = new Work({
      clock: context.clock,
      stopping: context.stopping,
      workers: 1,
      firstRetryMs: 1_000,
      lastRetryMs: 60_000,
      sync: () => this.#sync(),
      failed: (name, error) =>
        context.log.warn('cannot write the authentication config map', { name, error: messageOf(error) }),
    });
  }

  /** Writes the config map now and after every change by another client. Rejects when the write fails. */
  async start(): Promise<void> {
    await this.#sync();
    if (this.#isFollowing) return;
    this.#isFollowing = true;
    const ours = ({ object }: CacheEvent): boolean => object.name === NAME && object.namespace === NAMESPACE;
    followKind(
      this.#context,
      'configmaps',
      ({ events }) => {
        if (events.some(ours)) this.#work.add(NAME);
      },
      () => this.#work.add(NAME),
    );
  }

  /** Publishes the trusted CAs of this server after they have changed. */
  changed(): void {
    if (this.#isFollowing) this.#work.add(NAME);
  }

  async #sync(): Promise<void> {
    const { cache, clock, config, certificates } = this.#context;
    const wanted = dataOf(config, certificates.current);
    const request = ownRequest(this.#context, 'configmaps', '', NAMESPACE, NAME);
    const present = cache.kind('configmaps').get(NAMESPACE, NAME)?.parse<ConfigMap>();
    if (present === undefined) {
      const made: ConfigMap = { metadata: { name: NAME, namespace: NAMESPACE }, data: wanted };
      try {
        await createObject(this.#context, request, made);
      } catch (error) {
        // Another server has created the config map, or the cache is outdated. The watch event triggers the next
        // attempt.
        if (!isApiError(error, 'AlreadyExists')) throw error;
      }
      return;
    }
    const next = (map: ConfigMap): ConfigMap => ({
      ...map,
      data: { ...map.data, ...joined(map.data ?? {}, wanted, clock.nowMs()) },
    });
    if (semanticEqual(next(present).data, present.data)) return;
    await updateObject(this.#context, request, {
      strategy: request.kind.definition.strategy,
      next: (current) => next(current as ConfigMap),
    });
  }
}

function dataOf(
  { requestHeader }: ApiServerConfig,
  { clientCa, proxyCa }: CertificateSettings,
): Record<string, string> {
  const data: Record<string, string> = clientCa === undefined ? {} : { 'client-ca-file': clientCa };
  if (requestHeader === undefined) return data;
  const names = (values: readonly string[]): string => JSON.stringify(values.map(headerName));
  data['requestheader-client-ca-file'] = proxyCa ?? requestHeader.ca;
  data['requestheader-allowed-names'] = JSON.stringify(requestHeader.allowedNames);
  data['requestheader-username-headers'] = names(requestHeader.userHeaders ?? ['x-remote-user']);
  data['requestheader-group-headers'] = names(requestHeader.groupHeaders ?? ['x-remote-group']);
  data['requestheader-extra-headers-prefix'] = names(requestHeader.extraPrefixes ?? ['x-remote-extra-']);
  data['requestheader-uid-headers'] = names(requestHeader.uidHeaders ?? []);
  return data;
}

/** Header name in canonical case: `X-Remote-User`. */
function headerName(name: string): string {
  return name.replaceAll(/(^|-)([a-z])/g, (_, before: string, letter: string) => `${before}${letter.toUpperCase()}`);
}

/** Merges the values of this server with the values that other servers have written. */
function joined(
  present: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>>,
  nowMs: number,
): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [key, value] of Object.entries(wanted)) {
    const before = present[key] ?? '';
    found[key] = BUNDLES.has(key) ? joinedBundles(before, value, nowMs) : joinedLists(before, value);
  }
  return found;
}

function joinedBundles(before: string, ours: string, nowMs: number): string {
  const own = certificatesIn(ours);
  const others = certificatesIn(before).filter((each) => !own.includes(each) && !isOver(each, nowMs));
  return others.length === 0 ? ours : `${[...own, ...others].sort().join('\n')}\n`;
}

function certificatesIn(pem: string): string[] {
  return pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
}

function isOver(pem: string, nowMs: number): boolean {
  try {
    return Date.parse(new X509Certificate(pem).validTo) < nowMs;
  } catch {
    return true;
  }
}

function joinedLists(before: string, ours: string): string {
  const own = namesIn(ours);
  const others = namesIn(before);
  // An empty list allows any name, so the names of other servers need not be added.
  if (own.length === 0 || others.every((each) => own.includes(each))) return ours;
  return JSON.stringify([...new Set([...own, ...others])].sort());
}

function namesIn(text: string): string[] {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed.filter((each) => typeof each === 'string') : [];
  } catch {
    return [];
  }
}
