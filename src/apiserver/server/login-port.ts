/**
 * Interfaces between the API server and the OAuth server of the OpenShift layer. They run in one process. The OAuth
 * server handles its paths before authentication.
 */
import type { KubeObject } from '../../api/meta/object.ts';
import type { ConnectionInfo, HttpRequest, HttpResponse } from '../port.ts';

/** Access to cluster objects for the OAuth server, with the permissions of the API server itself. */
export interface LoginObjects {
  /** Resolves when reads return everything that was written before the call. */
  freshen(): Promise<void>;
  /**
   * Reads an object. Undefined for a missing object or a kind that is not served. The result is shared: copy it before
   * changing it.
   */
  get<T extends KubeObject>(resource: LoginResource, name: string, namespace?: string): T | undefined;
  list<T extends KubeObject>(resource: LoginResource): readonly T[];
  /** Creates an object. Rejects with 'AlreadyExists'. */
  create<T extends KubeObject>(resource: LoginResource, object: T): Promise<T>;
  /** Updates an object. Rejects with 'NotFound'. */
  update<T extends KubeObject>(resource: LoginResource, name: string, change: (current: T) => T): Promise<T>;
  /** Returns whether this call deleted the object. Of concurrent calls only one returns true. */
  remove(resource: LoginResource, name: string): Promise<boolean>;
  /** Object name of a code or token: its hash. */
  tokenName(token: string): string;
  /** User name of the service account whose token this is; undefined for any other text. */
  serviceAccountOf(token: string): string | undefined;
  /** UID and password hash of the user kube:admin. Undefined without the secret that contains the hash. */
  bootstrapUser(): { readonly uid: string; readonly hash: string } | undefined;
}

/** Name of a resource: `plural.group`, or `plural.` for the core group. */
export type LoginResource = `${string}.${string}`;

export interface LoginServer {
  handles(path: string): boolean;
  /** Handles the request. Rejects only with ApiErrors. */
  answer(request: HttpRequest, response: HttpResponse, connection: ConnectionInfo): Promise<void>;
  /** Creates the objects that logins need. Idempotent. */
  prepare(): Promise<void>;
  /** Issues a one-time link to the console as kube:admin. Undefined without that user or without a console. */
  consoleLink(): Promise<{ readonly url: string; readonly seconds: number } | undefined>;
  /** Stops timers and threads. */
  stop(): Promise<void>;
}

export type CreateLogin = (objects: LoginObjects) => LoginServer;
