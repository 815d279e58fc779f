/** Types of the handlers of computed kinds. */
import type { KubeObject } from '../../api/meta/object.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import type { RestContext } from '../rest/context.ts';

/** The create request of a computed object. */
export interface ReviewRequest {
  readonly user: UserInfo;
  /** Namespace of the request. '' for cluster-scoped kinds. */
  readonly namespace: string;
  readonly dryRun: boolean;
  /** Remote address of the connection. */
  readonly from: string;
}

/** Handles the create request of a computed object. Resolves with the object to return. */
export type Handler = (
  context: RestContext,
  object: KubeObject,
  question: ReviewRequest,
) => KubeObject | Promise<KubeObject>;
