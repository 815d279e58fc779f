/** Types of user.openshift.io/v1. Source: openshift/api user/v1 of release 4.10. */
import type { ObjectReference } from '../../../../api/generated/core/v1.ts';
import type { KubeObject } from '../../../../api/meta/object.ts';

export interface User extends KubeObject {
  fullName?: string;
  /** Names of the user's Identity objects, in the form `PROVIDER:NAME`. */
  identities?: string[] | null;
  groups?: string[] | null;
}

export interface Identity extends KubeObject {
  providerName?: string;
  providerUserName?: string;
  user?: ObjectReference;
  extra?: Record<string, string>;
}

export interface Group extends KubeObject {
  users?: string[] | null;
}

export interface UserIdentityMapping extends KubeObject {
  identity?: ObjectReference;
  user?: ObjectReference;
}
