/** Container edits required by devices, and the devices as the pod-resources API reports them. */
import type { ContainerConfig, Mount } from '../../../runtime/port.ts';

/** A device of a claim, allocated to a container. Source: k8s.io/kubelet/pkg/apis/podresources/v1. */
export interface DynamicResource {
  readonly claimName: string;
  readonly claimNamespace: string;
  readonly driver: string;
  readonly pool: string;
  readonly device: string;
  readonly cdiDevices: readonly string[];
  /** Only set for a device that several claims share. */
  readonly shareId?: string;
}

/** Changes to a container's configuration. */
export interface DeviceEdits {
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly devices: ContainerConfig['devices'];
  readonly mounts: readonly Mount[];
  readonly annotations: ReadonlyMap<string, string>;
}

export const NO_EDITS: DeviceEdits = { env: [], devices: [], mounts: [], annotations: new Map() };

/** Joins edits in order. Of several devices or mounts at one path, the first is kept. */
export function joinEdits(edits: readonly DeviceEdits[]): DeviceEdits {
  const firstAt = <T extends { readonly containerPath: string }>(items: readonly T[]): T[] => [
    ...new Map(items.toReversed().map((item) => [item.containerPath, item])).values(),
  ];
  return {
    env: edits.flatMap(({ env }) => env),
    devices: firstAt(edits.flatMap(({ devices }) => devices)),
    mounts: firstAt(edits.flatMap(({ mounts }) => mounts)),
    annotations: new Map(edits.flatMap(({ annotations }) => [...annotations])),
  };
}

/** Applies the edits to the container. Variables of the pod take precedence over those of a device. */
export function withDevices(config: ContainerConfig, edits: DeviceEdits): ContainerConfig {
  const own = new Set(config.env.map(({ name }) => name));
  return {
    ...config,
    env: [...edits.env.filter(({ name }) => !own.has(name)), ...config.env],
    devices: [...config.devices, ...edits.devices],
    mounts: [...config.mounts, ...edits.mounts],
    annotations: { ...Object.fromEntries(edits.annotations), ...config.annotations },
  };
}
