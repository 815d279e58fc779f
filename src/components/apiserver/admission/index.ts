/** The built-in admission plug-ins: an ordered list, each changing or refusing a write. */
import type { KubeObject } from '../../../api/meta/object.ts';
import type { UserInfo } from '../../../api/registry/definition.ts';
import type { ServedKind } from '../rest/kinds.ts';

export interface AdmissionRequest {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';
  readonly kind: ServedKind;
  readonly subresource: string;
  readonly namespace: string;
  /** '' while it is not known (generateName). */
  readonly name: string;
  /** As it is to be stored; absent for DELETE. A body of a sub-resource that is not the object itself (Eviction, TokenRequest) is in `body`. */
  readonly object?: KubeObject;
  /** The object as it is; absent for CREATE of the object itself. */
  readonly old?: KubeObject;
  readonly body?: unknown;
  readonly user: UserInfo;
  readonly dryRun: boolean;
}

export interface AdmissionPlugin {
  readonly name: string;
  /** May change `request.object`; throws an `ApiError` to refuse. */
  mutate?(request: AdmissionRequest): void | Promise<void>;
  /** Sees the object as it will be stored; throws an `ApiError` to refuse. */
  validate?(request: AdmissionRequest): void | Promise<void>;
}

export interface Admission {
  mutate(request: AdmissionRequest): Promise<void>;
  validate(request: AdmissionRequest): Promise<void>;
}

export function createAdmission(plugins: readonly AdmissionPlugin[]): Admission {
  const mutating = plugins.filter((plugin) => plugin.mutate !== undefined);
  const validating = plugins.filter((plugin) => plugin.validate !== undefined);
  return {
    async mutate(request) {
      for (const plugin of mutating) {
        const pending = plugin.mutate?.(request);
        // Hardly any has to wait, and a wait for nothing, for each plug-in of each write, is not free.
        if (pending !== undefined) await pending;
      }
    },
    async validate(request) {
      for (const plugin of validating) {
        const pending = plugin.validate?.(request);
        if (pending !== undefined) await pending;
      }
    },
  };
}
