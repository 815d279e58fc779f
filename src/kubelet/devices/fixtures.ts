/**
 * Test rig fixtures as devices of this node. Each is an extended resource and a device of the node's ResourceSlice, and
 * only one pod has it at a time. No plug-in is needed.
 */
import type { AllocationResult } from '../../api/devices/types.ts';
import type { Uid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { Fixture, FixtureScanner } from '../../rigs/fixtures-port.ts';
import { fixtureDeviceName } from '../../rigs/kinds/fixtures.ts';
import { type DeviceEdits, NO_EDITS } from '../core/pod-plan/devices.ts';
import type { OwnDriver } from './claims.ts';
import type { DeviceEndpoint } from './endpoint.ts';
import type { DeviceManager } from './manager.ts';
import { type AllocateAnswer, type ClaimReference, RIG_DRIVER } from './port.ts';

/** Maximum number of unplugged fixtures that are kept while unused. The oldest ones are removed first. */
const MAX_UNPLUGGED = 32;
/** Polling interval for network links. Changes of device nodes trigger a notification instead. */
const SCAN_MS = 15_000;

export interface FixtureState {
  readonly fixture: Fixture;
  readonly plugged: boolean;
  readonly inUse: boolean;
}

export interface FixturesOptions {
  readonly scanner: FixtureScanner;
  readonly manager: DeviceManager;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when the list or the state of a fixture has changed. */
  readonly onChanged: () => void;
  /** Called with the pods whose containers used the unplugged fixture. */
  readonly onUnplugged: (fixture: Fixture, podUids: readonly Uid[]) => void;
  readonly podsOfClaim: (claimUid: Uid) => readonly Uid[];
}

/** Name of the fixture as a device of a slice. */
export const deviceNameOf = ({ name }: Pick<Fixture, 'name'>): string => fixtureDeviceName(name);

export const resourceOf = ({ name }: Pick<Fixture, 'name'>): string => `${RIG_DRIVER}/${name}`;

export class Fixtures implements OwnDriver {
  readonly #options: FixturesOptions;
  readonly #known = new Map<string, { fixture: Fixture; plugged: boolean }>();
  /** Claims by the name of the device that they hold. */
  readonly #claimed = new Map<string, ClaimReference>();
  #timer: Timer | undefined;
  #watch: { close(): void } | undefined;
  #scanning = false;
  #again = false;
  #stopped = false;

  constructor(options: FixturesOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    await this.#scan();
    this.#watch = this.#options.scanner.watch(() => void this.#scan());
    this.#arm();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#watch?.close();
  }

  states(): FixtureState[] {
    return [...this.#known.values()].map(({ fixture, plugged }) => ({
      fixture,
      plugged,
      inUse: this.#options.manager.holder(resourceOf(fixture), fixture.name) !== undefined,
    }));
  }

  find(name: string): Fixture | undefined {
    const known = this.#known.get(name);
    return known?.plugged === true ? known.fixture : undefined;
  }

  /**
   * Assigns a fixture to a claim. A claim with admin access gets the fixture even if a pod or another claim uses it.
   */
  prepare(claim: ClaimReference, { device = '', adminAccess }: AllocationResult): DeviceEdits {
    // If several fixtures have the same device name, use the first by fixture name, which is the one in the slice.
    const [known] = [...this.#known.values()]
      .filter(({ fixture }) => deviceNameOf(fixture) === device)
      .sort((a, b) => (a.fixture.name < b.fixture.name ? -1 : 1));
    if (known === undefined) throw new Error(`fixture ${device} is not on this node; remove the claim's allocation`);
    const { fixture, plugged } = known;
    if (!plugged) throw new Error(`fixture ${fixture.name} is unplugged; plug it in`);
    if (adminAccess === true) return editsOf(fixture);
    const holder = this.#options.manager.holder(resourceOf(fixture), fixture.name);
    if (holder !== undefined) throw new Error(`fixture ${fixture.name} is in use by pod ${holder}`);
    const other = this.#claimed.get(device);
    if (other !== undefined && other.uid !== claim.uid)
      throw new Error(`fixture ${fixture.name} is in use by claim ${other.namespace}/${other.name}`);
    this.#claimed.set(device, claim);
    this.#publish(fixture, { plugged });
    return editsOf(fixture);
  }

  unprepare(claim: ClaimReference): void {
    for (const [device, { uid }] of this.#claimed) {
      if (uid !== claim.uid) continue;
      this.#claimed.delete(device);
      for (const { fixture, plugged } of this.#known.values())
        if (deviceNameOf(fixture) === device) this.#publish(fixture, { plugged });
    }
  }

  #arm(): void {
    if (this.#stopped) return;
    this.#timer = this.#options.clock.setTimer(SCAN_MS, () => void this.#scan().then(() => this.#arm()));
  }

  async #scan(): Promise<void> {
    if (this.#scanning) {
      this.#again = true;
      return;
    }
    this.#scanning = true;
    try {
      do {
        this.#again = false;
        this.#apply(await this.#options.scanner.scan());
      } while (this.#again && !this.#stopped);
    } catch (error) {
      this.#options.log.warn('fixtures not scanned', { error: messageOf(error) });
    } finally {
      this.#scanning = false;
    }
  }

  #apply(found: readonly Fixture[]): void {
    if (this.#stopped) return;
    const { log, onChanged } = this.#options;
    let changed = false;
    for (const fixture of found) {
      const before = this.#known.get(fixture.name);
      if (before?.plugged === true && JSON.stringify(before.fixture) === JSON.stringify(fixture)) continue;
      if (before?.plugged !== true) log.info('fixture plugged', { fixture: fixture.name, type: fixture.type });
      // The fixture has a new device node. Containers still have the old one.
      else this.#unplugged(before.fixture);
      this.#known.set(fixture.name, { fixture, plugged: true });
      this.#publish(fixture, { plugged: true });
      changed = true;
    }
    const present = new Set(found.map(({ name }) => name));
    for (const known of this.#known.values()) {
      if (!known.plugged || present.has(known.fixture.name)) continue;
      known.plugged = false;
      changed = true;
      // Re-insert at the end, after fixtures that were unplugged earlier.
      this.#known.delete(known.fixture.name);
      this.#known.set(known.fixture.name, known);
      log.warn('fixture unplugged', { fixture: known.fixture.name });
      this.#publish(known.fixture, { plugged: false });
      this.#unplugged(known.fixture);
    }
    if (!changed) return;
    this.#forgetOldest();
    onChanged();
  }

  /** Limits the list, because a device may return with a new serial number each time. */
  #forgetOldest(): void {
    const { manager } = this.#options;
    const unplugged = [...this.#known.values()].filter(
      ({ fixture, plugged }) =>
        !plugged &&
        !this.#claimed.has(deviceNameOf(fixture)) &&
        manager.holder(resourceOf(fixture), fixture.name) === undefined,
    );
    for (const { fixture } of unplugged.slice(0, Math.max(0, unplugged.length - MAX_UNPLUGGED))) {
      this.#known.delete(fixture.name);
      manager.withdraw(resourceOf(fixture));
    }
  }

  #unplugged(fixture: Fixture): void {
    const { manager, onUnplugged, podsOfClaim } = this.#options;
    const holder = manager.holder(resourceOf(fixture), fixture.name);
    const claim = this.#claimed.get(deviceNameOf(fixture));
    const pods = [...(holder === undefined ? [] : [holder]), ...(claim === undefined ? [] : podsOfClaim(claim.uid))];
    if (pods.length > 0) onUnplugged(fixture, pods);
  }

  #publish(fixture: Fixture, { plugged }: { readonly plugged: boolean }): void {
    const free = plugged && !this.#claimed.has(deviceNameOf(fixture));
    this.#options.manager.publish(
      resourceOf(fixture),
      [{ id: fixture.name, health: free ? 'Healthy' : 'Unhealthy', numaNodes: [] }],
      this.#endpoint(fixture.name),
    );
  }

  #endpoint(name: string): DeviceEndpoint {
    return {
      preStartRequired: false,
      choose: async (available, size) => available.slice(0, size),
      allocate: async (): Promise<AllocateAnswer> => {
        const fixture = this.find(name);
        if (fixture === undefined) throw new Error(`fixture ${name} is unplugged; plug it in`);
        const { env, devices, mounts } = editsOf(fixture);
        return {
          env: new Map(env.map((each) => [each.name, each.value])),
          devices,
          mounts,
          annotations: new Map(),
          cdiDevices: [],
        };
      },
      preStart: async () => {},
      stop: () => {},
    };
  }
}

/** Edits that add the fixture's device node and an environment variable with its path: `RIG_<NAME>`. */
function editsOf({ name, node, link }: Fixture): DeviceEdits {
  const variable = `RIG_${name.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')}`;
  if (node === undefined) return { ...NO_EDITS, env: link === undefined ? [] : [{ name: variable, value: link }] };
  return {
    ...NO_EDITS,
    env: [{ name: variable, value: node.containerPath }],
    devices: [{ ...node, permissions: 'rw' }],
    // A device node in another directory does not open a pseudo-terminal, so the devpts file is bind-mounted.
    mounts: node.hostPath.startsWith('/dev/pts/') ? [{ ...node, readOnly: false, propagation: 'private' }] : [],
  };
}
