/** Detection of traffic to the addresses and node ports of idled services by the packet filter. */
import type { Service } from '../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../api/generated/discovery/v1.ts';
import { isIdled } from '../../api/kinds/network/services/idling.ts';
import { objectKey } from '../../api/meta/object.ts';
import { startApplyLoop } from '../../base/concurrency/apply-loop.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { NeedPods } from '../../client/informers/need-pods.ts';
import type { Informer } from '../../client/types.ts';
import { type Family, idleKeys, idleTable, REQUESTED, type ServicePort } from './core/index.ts';
import type { PacketFilter } from './core/port.ts';

export interface IdlingDeps {
  readonly services: Informer<Service>;
  readonly slices: Informer<EndpointSlice>;
  readonly packetFilter: PacketFilter;
  readonly needPods: NeedPods;
  readonly clock: Clock;
  readonly log: Log;
  readonly families: readonly Family[];
  /** Name of the proxy's table. */
  readonly table: string;
  /** Ports that the proxy forwards for a service, without the addresses and ports that the service may not use. */
  readonly portsOf: (key: string) => readonly ServicePort[];
}

export interface Idling {
  /** Applies the table again if it was deleted or if it is in `damaged`. */
  verify(damaged: ReadonlySet<string>): void;
  /** Must be called after the proxy has planned services again. */
  planned(): void;
  stop(options: { readonly keepRules: boolean }): Promise<void>;
}

const SERVICE_NAME = 'kubernetes.io/service-name';
const POLL_MS = 2_000;
const MAX_IDLED = 1_000;

/** Starts the detection. While no service is idled, there is no table and no polling. */
export function startIdling(deps: IdlingDeps): Idling {
  const { services, slices, packetFilter, needPods, clock, log, families } = deps;
  const table = `${deps.table}-idle`;
  /** Keys of idled services. */
  const idled = new Set<string>();
  /** Table content by service without endpoints, for each address family. */
  let held: ReadonlyMap<Family, ReadonlyMap<string, string>> = new Map();
  /** Whether this process knows the content of the kernel's table, which an earlier process may have left. */
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
  const wantedNow = (): Map<Family, Map<string, string>> => {
    const serving = idled.size === 0 ? new Set<string>() : withServers();
    const waiting = [...idled].filter((each) => !serving.has(each)).slice(0, MAX_IDLED);
    return new Map(
      families.map((family) => [
        family,
        new Map(waiting.flatMap((key) => idleKeys(deps.portsOf(key), family).map((each) => [each, key] as const))),
      ]),
    );
  };
  const poll = async (): Promise<void> => {
    for (const [family, keys] of held) {
      if (keys.size === 0) continue;
      for (const set of REQUESTED)
        for (const key of await packetFilter.elements(family, table, set)) {
          const service = services.get(keys.get(key) ?? '');
          if (service !== undefined) needPods(service);
        }
    }
  };
  const holdsAny = (): boolean => [...held.values()].some(({ size }) => size > 0);
  const arm = (): void => {
    if (stopped || timer !== undefined || !holdsAny()) return;
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
    const keysOf = (family: Family): string[] => [...(wanted.get(family)?.keys() ?? [])];
    const isSame = families.every((family) => keysOf(family).join() === [...(held.get(family)?.keys() ?? [])].join());
    if (isKnown && isSame) return;
    await packetFilter.apply(families.map((family) => idleTable(keysOf(family), family, table)).join(''));
    held = wanted;
    isKnown = true;
    arm();
  };
  const loop = startApplyLoop({ apply, failure: 'rules of idled services not applied; retrying', clock, log });
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
  return {
    verify: (damaged) => {
      if (!holdsAny()) return;
      const lost = async ([family, keys]: readonly [Family, ReadonlyMap<string, string>]): Promise<void> => {
        if (keys.size === 0) return;
        const isDamaged = damaged.has(`${family === 6 ? 'ip6' : 'ip'} ${table}`);
        if (!isDamaged && (await packetFilter.outline(family, table)) !== undefined) return;
        isKnown = false;
        loop.touch();
      };
      Promise.all([...held].map(lost)).catch((error: unknown) =>
        log.v(2, 'rules of idled services not compared', { error: messageOf(error) }),
      );
    },
    planned: () => {
      if (idled.size > 0) loop.touch();
    },
    async stop({ keepRules }) {
      stopped = true;
      for (const each of unsubscribe) each();
      timer?.cancel();
      await loop.stop();
      if (!keepRules && holdsAny())
        await packetFilter.apply(families.map((family) => idleTable([], family, table)).join(''));
    },
  };
}
