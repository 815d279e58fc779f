/** Records which container has which devices, in a file that survives a restart of the kubelet. */
import type { Uid } from '../../base/brand.ts';
import { decodeJson, flag, list, map, object, oneOf, own, text } from '../../base/decode.ts';
import type { DeviceEdits } from '../core/pod-plan/devices.ts';
import { NO_EDITS } from '../core/pod-plan/devices.ts';

export interface Allocation {
  readonly podUid: Uid;
  readonly container: string;
  /**
   * Whether the container ends before the pod's regular containers start. Regular containers of the pod may then reuse
   * its devices.
   */
  readonly isInit: boolean;
  readonly resource: string;
  readonly ids: readonly string[];
  readonly edits: DeviceEdits;
  readonly cdiDevices: readonly string[];
}

export class Allocations {
  readonly #all = new Map<string, Allocation>();

  get list(): readonly Allocation[] {
    return [...this.#all.values()];
  }

  find(podUid: Uid, container: string, resource: string): Allocation | undefined {
    return this.#all.get(keyOf({ podUid, container, resource }));
  }

  of(podUid: Uid, container?: string): Allocation[] {
    return this.list.filter((each) => each.podUid === podUid && (container ?? each.container) === each.container);
  }

  set(allocation: Allocation): void {
    this.#all.set(keyOf(allocation), allocation);
  }

  release(podUid: Uid): boolean {
    const held = this.of(podUid);
    for (const each of held) this.#all.delete(keyOf(each));
    return held.length > 0;
  }

  /**
   * IDs of the devices that a container cannot get because another pod, or a container that runs at the same time, has
   * them.
   */
  allocatedTo(resource: string, podUid: Uid, isInit: boolean): Set<string> {
    const others = this.list.filter(
      (each) => each.resource === resource && (each.podUid !== podUid || !(isInit || each.isInit)),
    );
    return new Set(others.flatMap(({ ids }) => ids));
  }
}

const keyOf = ({ podUid, container, resource }: Pick<Allocation, 'podUid' | 'container' | 'resource'>): string =>
  `${podUid}/${container}/${resource}`;

interface CheckpointFile {
  readonly version: 1;
  readonly resources: readonly string[];
  readonly allocations: readonly (Omit<Allocation, 'edits'> & {
    readonly edits: Omit<DeviceEdits, 'annotations'> & { readonly annotations: Readonly<Record<string, string>> };
  })[];
}

const CHECKPOINT = own<CheckpointFile>(
  object({
    version: oneOf(1),
    resources: list(text),
    allocations: list(
      object({
        podUid: text,
        container: text,
        isInit: flag,
        resource: text,
        ids: list(text),
        edits: object({ annotations: map(text) }),
        cdiDevices: list(text),
      }),
    ),
  }),
);

export function writeCheckpoint(allocations: Allocations, resources: readonly string[]): string {
  const file: CheckpointFile = {
    version: 1,
    resources,
    allocations: allocations.list.map((each) => ({
      ...each,
      edits: { ...each.edits, annotations: Object.fromEntries(each.edits.annotations) },
    })),
  };
  return `${JSON.stringify(file)}\n`;
}

/** Throws an Error for a file that this kubelet did not write. */
export function readCheckpoint(content: string, into: Allocations): readonly string[] {
  const file = decodeJson(CHECKPOINT, content, 'device checkpoint');
  for (const each of file.allocations) {
    const { edits } = each;
    into.set({
      ...each,
      edits: { ...NO_EDITS, ...edits, annotations: new Map(Object.entries(edits.annotations)) },
    });
  }
  return file.resources;
}
