/** Traffic to the addresses of idled services: noted by the packet filter, and reported. */
import type { Service } from 'kubernetes-types/core/v1';
import type { EndpointSlice } from 'kubernetes-types/discovery/v1';
import { isIdled } from '../../api/kinds/services/idling.ts';
import { objectKey } from '../../api/meta/object.ts';
import { startApplyLoop } from '../../base/apply-loop.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { NeedPods } from '../../client/need-pods.ts';
import type { Informer } from '../../client/types.ts';
import { ASKED, type Family, idleKeys, idleTable } from '../../core/ruleset/index.ts';
import type { PacketFilter } from '../../core/ruleset/port.ts';

export interface IdlingDeps {
  readonly services: Informer<Service>;
  readonly slices: Informer<EndpointSlice>;
  readonly packetFilter: PacketFilter;
  readonly needPods: NeedPods;
  readonly clock: Clock;
  readonly log: Log;
  readonly families: readonly Family[];
  /** Of the proxy's table. */
  readonly table: string;
  /** Cluster IPs that the host answers itself. */
  readonly hostServices: readonly string[];
}

const SERVICE_NAME = 'kubernetes.io/service-name';
const POLL_MS = 2_000;
const MAX_IDLED = 1_000;

/** The function that ends it. While no service is idled there is no table, and nothing is polled. */
export function startIdling(deps: IdlingDeps): (options: { readonly keepRules: boolean }) => Promise<void> {
  const { services, slices, packetFilter, needPods, clock, log, families } = deps;
  const table = `${deps.table}-idle`;
  /** Idled services, by their key. */
  const idled = new Set<string>();
  /** Services without endpoints, by what the table holds of them. */
  let held: ReadonlyMap<string, string> = new Map();
  /** False: an earlier process may have left a table. */
  let isKnown = false;
  let timer: Timer | undefined;
  let stopped = false;

  const withServers = (): Set<string> =>
    new Set(
      slices
        .list()
        .filter(({ endpoints }) => (endpoints ?? []).some(({ conditions }) => conditions?.ready !== false))
        .map(({ metadata }) => `${metadata?.namespace}/${metadata?.labels?.[SERVICE_NAME] ?? ''}`),
    );
  const wantedNow = (): Map<string, string> => {
    const serving = idled.size === 0 ? new Set<string>() : withServers();
    const found = new Map<string, string>();
    for (const key of [...idled].filter((each) => !serving.has(each)).slice(0, MAX_IDLED)) {
      const service = services.get(key);
      if (service === undefined || deps.hostServices.includes(service.spec?.clusterIP ?? '')) continue;
      for (const family of families) for (const each of idleKeys(service, family)) found.set(each, key);
    }
    return found;
  };
  const poll = async (): Promise<void> => {
    for (const family of families)
      for (const key of await packetFilter.elements(family, table, ASKED)) {
        const service = services.get(held.get(key) ?? '');
        if (service !== undefined) needPods(service);
      }
  };
  const arm = (): void => {
    if (stopped || timer !== undefined || held.size === 0) return;
    timer = clock.setTimer(POLL_MS, () => {
      poll()
        .catch((error: unknown) => log.warn('traffic of idled services not read', { error: messageOf(error) }))
        .finally(() => {
          timer = undefined;
          arm();
        });
    });
  };
  const apply = async (): Promise<void> => {
    const wanted = wantedNow();
    if (isKnown && [...wanted.keys()].join() === [...held.keys()].join()) return;
    const keysOf = (family: Family): string[] =>
      [...wanted.keys()].filter((key) => key.includes(':') === (family === 6));
    await packetFilter.apply(families.map((family) => idleTable(keysOf(family), family, table)).join(''));
    held = wanted;
    isKnown = true;
    arm();
  };
  const loop = startApplyLoop({ apply, failure: 'rules of idled services not applied; trying again', clock, log });
  const changed = (service: Service): void => {
    const key = objectKey(service);
    if (isIdled(service)) idled.add(key);
    else if (!idled.delete(key)) return;
    loop.touch();
  };
  const deleted = (service: Service): void => {
    if (idled.delete(objectKey(service))) loop.touch();
  };
  const sliceChanged = ({ metadata }: EndpointSlice): void => {
    if (idled.has(`${metadata?.namespace}/${metadata?.labels?.[SERVICE_NAME] ?? ''}`)) loop.touch();
  };
  const unsubscribe = [
    services.onChange({ added: changed, updated: changed, deleted }),
    slices.onChange({ added: sliceChanged, updated: sliceChanged, deleted: sliceChanged }),
  ];
  loop.touch();
  return async ({ keepRules }) => {
    stopped = true;
    for (const each of unsubscribe) each();
    timer?.cancel();
    await loop.stop();
    if (!keepRules && held.size > 0)
      await packetFilter.apply(families.map((family) => idleTable([], family, table)).join(''));
  };
}
