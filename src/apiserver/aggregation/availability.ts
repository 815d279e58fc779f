/**
 * Checks the availability of aggregated API servers when an APIService, its service or the endpoints change, and every
 * 30 seconds. Every API server of the cluster does this. Source: k8s.io/kube-aggregator/pkg/controllers/status.
 */

import type { Service } from '../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../api/generated/discovery/v1.ts';
import {
  type APIService,
  type Availability,
  availableCondition,
  LOCAL_AVAILABLE,
  setAvailable,
} from '../../api/kinds/cluster/apiservices/conditions.ts';
import { isApiError } from '../../api/meta/status.ts';
import { messageOf } from '../../base/errors.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import { ownRequest } from '../bootstrap/index.ts';
import type { BackendContext, ServerContext, WriteContext } from '../rest/context.ts';
import { Work } from '../rest/name-queue.ts';
import { followKind } from '../rest/watches/follow.ts';
import { updateObject } from '../rest/writes/update.ts';
import type { CachedObject } from '../watch-cache/cached-object.ts';
import { type HostPort, SERVICE_NAME_LABEL, serviceEndpoints, slicesOf } from '../webhooks/service-endpoints.ts';
import { authorityOf, queryBackend } from './backend.ts';
import type { AvailabilityMetrics } from './metrics.ts';
import type { Delegated } from './services.ts';

type AvailabilityContext = WriteContext & BackendContext & Pick<ServerContext, 'apiServices' | 'log'>;

const RECHECK_MS = 30_000;
const PROBE_TIMEOUT_MS = 5_000;
/** Number of endpoints probed in parallel. One successful response is enough. */
const MAX_PROBES = 5;

const PASSED: Availability = { status: 'True', reason: 'Passed', message: 'all checks passed' };
const no = (reason: string, message: string): Availability => ({ status: 'False', reason, message });

export class AvailabilityController {
  readonly #context: AvailabilityContext;
  readonly #metrics: AvailabilityMetrics;
  readonly #work: Work;
  /** Last checked specification of each APIService, by name. */
  readonly #seen = new Map<string, string>();

  constructor(context: AvailabilityContext, metrics: AvailabilityMetrics) {
    this.#context = context;
    this.#metrics = metrics;
    this.#work = new Work({
      clock: context.clock,
      stopping: context.stopping,
      workers: 4,
      firstRetryMs: 250,
      lastRetryMs: RECHECK_MS,
      sync: (name) => this.#sync(name),
      failed: (name, error) => context.log.v(2, 'APIService unavailable', { name, error: messageOf(error) }),
    });
  }

  start(): void {
    const { apiServices } = this.#context;
    apiServices.onChange((name) => this.#changed(name));
    for (const { name, specText } of apiServices.all) {
      this.#seen.set(name, specText);
      this.#work.add(name);
    }
    this.#follow('services/specs', (object) => object.name);
    this.#follow('endpointslices', (object) => object.shared<EndpointSlice>().metadata?.labels?.[SERVICE_NAME_LABEL]);
    this.#recheck();
  }

  /**
   * Ignores changes of the status by other servers: servers that disagree about the availability would trigger each
   * other endlessly.
   */
  #changed(name: string): void {
    const now = this.#context.apiServices.get(name);
    if (now === undefined) {
      this.#seen.delete(name);
      this.#metrics.forget(name);
      return;
    }
    const isNew = this.#seen.get(name) !== now.specText;
    this.#seen.set(name, now.specText);
    if (isNew || (now.service === undefined && !now.available)) this.#work.add(name);
  }

  /** `serviceOf` returns the name of the service that an object of the kind belongs to. */
  #follow(prefix: string, serviceOf: (object: CachedObject) => string | undefined): void {
    const { apiServices } = this.#context;
    followKind(
      this.#context,
      prefix,
      (batch) => {
        const { delegated } = apiServices;
        if (delegated.length === 0) return;
        for (const { object } of batch.events) {
          for (const { name, service } of delegated) {
            if (service.namespace === object.namespace && service.name === serviceOf(object)) this.#work.add(name);
          }
        }
      },
      () => {
        for (const { name } of apiServices.delegated) this.#work.add(name);
      },
    );
  }

  #recheck(): void {
    this.#context.clock.setTimer(RECHECK_MS, () => {
      if (this.#context.stopping.aborted) return;
      for (const { name } of this.#context.apiServices.delegated) this.#work.add(name);
      this.#recheck();
    });
  }

  async #sync(name: string): Promise<void> {
    const { apiServices } = this.#context;
    const registered = apiServices.get(name);
    if (registered === undefined) return;
    const delegated = apiServices.delegate(registered.group, registered.version);
    if (delegated === undefined) {
      await this.#write(name, registered.specText, LOCAL_AVAILABLE);
      return;
    }
    let found: Availability;
    let failure: unknown;
    try {
      found = this.#serviceProblem(delegated) ?? PASSED;
      if (found === PASSED) await this.#probe(delegated);
    } catch (error) {
      failure = error;
      found = no('FailedDiscoveryCheck', messageOf(error));
    }
    await this.#write(name, delegated.specText, found);
    // Throwing causes a retry with back-off, because no event announces that the server responds again.
    if (failure !== undefined) throw failure;
  }

  /** The problem of the service or its endpoints; undefined if there is none. */
  #serviceProblem({ service: { namespace, name, port } }: Delegated): Availability | undefined {
    const { cache } = this.#context;
    const at = `service/${name} in ${JSON.stringify(namespace)}`;
    const service = cache.kind('services/specs').get(namespace, name)?.shared<Service>();
    if (service === undefined) return no('ServiceNotFound', `${at} is not present`);
    if ((service.spec?.type ?? 'ClusterIP') !== 'ClusterIP') return undefined;
    const declared = service.spec?.ports?.find((each) => each.port === port);
    if (declared === undefined) return no('ServicePortError', `${at} is not listening on port ${port}`);
    const slices = slicesOf(cache, namespace, name);
    if (slices.length === 0) return no('EndpointsNotFound', `cannot find endpointslices for ${at}`);
    const portName = declared.name ?? '';
    const active = slices.some(
      ({ endpoints, ports }) =>
        (endpoints ?? []).some((each) => each.conditions?.ready !== false) &&
        (ports ?? []).some((each) => (each.name ?? '') === portName && each.port !== undefined),
    );
    if (active) return undefined;
    return no(
      'MissingEndpoints',
      `endpointslices for ${at} have no addresses with port name ${JSON.stringify(portName)}`,
    );
  }

  /**
   * Requests a path that every aggregated server must serve. The probe does not verify the server's certificate; the
   * proxy does.
   */
  async #probe(to: Delegated): Promise<void> {
    const { cache, random } = this.#context;
    const { namespace, name, port } = to.service;
    const candidates = serviceEndpoints(cache, namespace, name, port);
    const first = Math.floor(random.random() * candidates.length);
    const chosen = [...candidates.slice(first), ...candidates.slice(0, first)].slice(0, MAX_PROBES);
    const abort = new AbortController();
    try {
      await Promise.any(chosen.map((at) => this.#probeAt(to, at, abort.signal)));
    } catch (error) {
      throw error instanceof AggregateError ? error.errors[0] : error;
    } finally {
      abort.abort();
    }
  }

  async #probeAt(to: Delegated, at: HostPort, signal: AbortSignal): Promise<void> {
    const path = to.group === '' ? `/api/${to.version}` : `/apis/${to.group}/${to.version}`;
    const url = `https://${authorityOf(at)}${path}`;
    const failed = (why: string): Error => new Error(`failing or missing response from ${url}: ${why}`);
    let code: number;
    try {
      ({ code } = await queryBackend(this.#context, {
        at,
        path,
        accept: 'application/json',
        tls: { ...to.tls, authority: undefined },
        timeoutMs: PROBE_TIMEOUT_MS,
        maxBytes: 0,
        signal,
      }));
    } catch (error) {
      throw failed(`Get ${JSON.stringify(url)}: ${messageOf(error)}`);
    }
    if (code < 200 || code >= 300) throw failed(`bad status from ${url}: ${code}`);
  }

  /** Writes the result for `specText`. If the specification has changed since, the result is dropped. */
  async #write(name: string, specText: string, found: Availability): Promise<void> {
    const { apiServices, log } = this.#context;
    const before = apiServices.get(name);
    if (before === undefined || before.specText !== specText) return;
    this.#metrics.observe(name, found);
    const known = availableCondition(before.object.parse<APIService>());
    if (known?.status === found.status && known.reason === found.reason && known.message === found.message) return;
    log.v(2, 'availability of an APIService changed', { name, from: known?.status ?? 'Unknown', ...found });
    try {
      await updateObject(
        this.#context,
        { ...ownRequest(this.#context, 'apiservices', 'apiregistration.k8s.io', '', name), subresource: 'status' },
        {
          strategy: {},
          next: (current) => {
            setAvailable(current as APIService, found, timestamp(this.#context.clock.nowMs()));
            return current;
          },
        },
      );
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
  }
}
