/** How a virtual kind is answered. */
import type { KubeObject } from '../../../api/meta/object.ts';
import type { UserInfo } from '../../../api/registry/definition.ts';
import type { RestContext } from '../rest/context.ts';

/** The request that creates a virtual object. */
export interface Question {
  readonly user: UserInfo;
  /** '' for cluster-scoped kinds. */
  readonly namespace: string;
  readonly dryRun: boolean;
  /** The address of the client's end of the connection. */
  readonly from: string;
}

/** Resolves with the answered object. */
export type Handler = (
  context: RestContext,
  object: KubeObject,
  question: Question,
) => KubeObject | Promise<KubeObject>;
