/** What devices add to a container, and how the pod-resources API shows them. */
import type { ContainerConfig, Mount } from './port.ts';

/** A device of a claim that a container was given. Source: k8s.io/kubelet/pkg/apis/podresources/v1. */
export interface DynamicResource {
  readonly claimName: string;
  readonly claimNamespace: string;
  readonly driver: string;
  readonly pool: string;
  readonly device: string;
  readonly cdiDevices: readonly string[];
  /** Of a device that several claims share. */
  readonly shareId?: string;
}

/** Changes of a container's configuration. */
export interface DeviceEdits {
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly devices: ContainerConfig['devices'];
  readonly mounts: readonly Mount[];
  readonly annotations: ReadonlyMap<string, string>;
}

export const NO_EDITS: DeviceEdits = { env: [], devices: [], mounts: [], annotations: new Map() };

/** All of them, in order; of two devices or mounts at one path the first stays. */
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

/** The container with its devices. Variables of the pod's own take precedence over those of a device. */
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
