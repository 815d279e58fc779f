/** Publishes the node's fixtures as ResourceSlices of one pool. Source: KEP-4381, KEP-5055 (taints). */

import type { Device, DeviceTaint, ResourceSlice } from '../../api/devices/types.ts';
import type { Node } from '../../api/generated/core/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { type NodeName, toUid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import { canonicalJson } from '../../base/json/canonical-json.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { ApiClient } from '../../client/types.ts';
import { deviceNameOf, type FixtureState } from './fixtures.ts';
import { RIG_DRIVER } from './port.ts';

/** Maximum number of devices that the API accepts in a slice whose devices have taints. */
const MAX_DEVICES = 64;
const MAX_VALUE = 64;
const RETRY_MS = 2_000;
export const UNPLUGGED_TAINT = `${RIG_DRIVER}/unplugged`;
const IN_USE_TAINT = `${RIG_DRIVER}/in-use`;

export interface FixtureSlicesOptions {
  readonly nodeName: NodeName;
  /** The Node from the API server, which owns the slice. Undefined while it is not known. */
  readonly node: () => Node | undefined;
  readonly states: () => readonly FixtureState[];
  readonly clock: Clock;
  readonly log: Log;
}

export class FixtureSlices {
  readonly #options: FixtureSlicesOptions;
  #client: ApiClient | undefined;
  #written = '';
  #owner = '';
  #generation = 0;
  #exists = false;
  #working = false;
  #again = false;
  #stopped = false;
  #timer: Timer | undefined;
  #trouble = '';

  constructor(options: FixtureSlicesOptions) {
    this.#options = options;
  }

  connect(client: ApiClient): void {
    this.#client = client;
    this.kick();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** Handles a re-created Node: the slice of the old Node is deleted with it. */
  nodeChanged(): void {
    if (toUid(this.#options.node()?.metadata?.uid) !== this.#owner) this.kick();
  }

  /** Schedules a write of the slice if it differs from the fixtures. */
  kick(): void {
    if (this.#stopped || this.#client === undefined) return;
    if (this.#working) {
      this.#again = true;
      return;
    }
    this.#working = true;
    this.#timer?.cancel();
    void this.#write(this.#client)
      .then(() => {
        this.#trouble = '';
      })
      .catch((error: unknown) => {
        const reason = messageOf(error);
        this.#options.log.v(reason === this.#trouble ? 4 : 2, 'resource slice not written', { error: reason });
        this.#trouble = reason;
        if (!this.#stopped) this.#timer = this.#options.clock.setTimer(RETRY_MS, () => this.kick());
      })
      .finally(() => {
        this.#working = false;
        if (this.#again) {
          this.#again = false;
          this.kick();
        }
      });
  }

  async #write(client: ApiClient): Promise<void> {
    const { nodeName, states, node } = this.#options;
    const devices = fixtureDevices(states());
    this.#owner = toUid(node()?.metadata?.uid);
    // A slice without an owner would outlive its Node. `nodeChanged` runs when the Node is known.
    if (this.#owner === '') return;
    const content = canonicalJson([this.#owner, devices]);
    if (content === this.#written) return;
    const slices = client.resource(resources.resourceSlices);
    const name = `${nodeName}-${RIG_DRIVER}`;
    // A node may read only its own slices, and a missing slice is not its own, so creation is tried first.
    if (!this.#exists) {
      if (devices.length === 0) return;
      try {
        await slices.create(this.#slice({ name }, devices));
        this.#exists = true;
        this.#written = content;
        return;
      } catch (error) {
        if (!isApiError(error, 'AlreadyExists')) throw error;
        this.#exists = true;
      }
    }
    try {
      const known = await slices.get(name);
      this.#generation = Math.max(this.#generation, known.spec?.pool?.generation ?? 0);
      await slices.update(this.#slice(known.metadata ?? { name }, devices));
    } catch (error) {
      if (isApiError(error, 'NotFound') || isApiError(error, 'Forbidden')) this.#exists = false;
      throw error;
    }
    this.#written = content;
  }

  #slice(metadata: NonNullable<ResourceSlice['metadata']>, devices: Device[]): ResourceSlice {
    const { nodeName } = this.#options;
    this.#generation += 1;
    const owner = { apiVersion: 'v1', kind: 'Node', name: nodeName, uid: this.#owner, controller: true };
    const pool = { name: nodeName, generation: this.#generation, resourceSliceCount: 1 };
    return {
      apiVersion: 'resource.k8s.io/v1',
      kind: 'ResourceSlice',
      metadata: { ...metadata, ownerReferences: [owner] },
      spec: { nodeName, driver: RIG_DRIVER, pool, devices },
    };
  }
}

/** Devices sorted by name. If two fixtures have the same device name, the first is used. */
export function fixtureDevices(states: readonly FixtureState[]): Device[] {
  const devices = new Map<string, Device>();
  for (const state of [...states].sort((a, b) => (a.fixture.name < b.fixture.name ? -1 : 1))) {
    const name = deviceNameOf(state.fixture);
    if (name !== '' && !devices.has(name) && devices.size < MAX_DEVICES)
      devices.set(name, { name, ...described(state) });
  }
  return [...devices.values()];
}

function described({ fixture, plugged, inUse }: FixtureState): Device {
  const texts: Record<string, string | undefined> = {
    fixture: fixture.name,
    type: fixture.type,
    path: fixture.node?.hostPath,
    link: fixture.link,
    ...fixture.attributes,
  };
  const attributes = Object.entries(texts).flatMap(([key, value]) =>
    value === undefined || value === '' ? [] : [[key, { string: value.slice(0, MAX_VALUE) }] as const],
  );
  const taints: DeviceTaint[] = [
    ...(plugged ? [] : [{ key: UNPLUGGED_TAINT, effect: 'NoExecute' }]),
    ...(inUse ? [{ key: IN_USE_TAINT, effect: 'NoSchedule' }] : []),
  ];
  return { attributes: Object.fromEntries(attributes), ...(taints.length === 0 ? {} : { taints }) };
}
