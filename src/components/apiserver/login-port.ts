/**
 * What the API server and the OAuth server of OpenShift's layer need of each other. They run in one process; the OAuth
 * server answers its paths before authentication.
 */
import type { KubeObject } from '../../api/meta/object.ts';
import type { ConnectionInfo, HttpRequest, HttpResponse } from './port.ts';

/** Objects of the cluster for the OAuth server, which acts as the API server itself. */
export interface LoginObjects {
  /** Resolves when reads return what was written before the call. */
  freshen(): Promise<void>;
  /** Undefined for an absent object, and for a kind that is not served. The result is shared: copy before changing. */
  get<T extends KubeObject>(resource: LoginResource, name: string, namespace?: string): T | undefined;
  list<T extends KubeObject>(resource: LoginResource): readonly T[];
  /** Rejects with 'AlreadyExists'. */
  create<T extends KubeObject>(resource: LoginResource, object: T): Promise<T>;
  /** Rejects with 'NotFound'. */
  update<T extends KubeObject>(resource: LoginResource, name: string, change: (current: T) => T): Promise<T>;
  /** Whether this call removed the object: of several at once, one does. */
  remove(resource: LoginResource, name: string): Promise<boolean>;
  /** Name of the object of a code or token: its hash. */
  tokenName(token: string): string;
  /** The user kube:admin: its UID, and the hash of its password. Undefined without its secret. */
  bootstrapUser(): { readonly uid: string; readonly hash: string } | undefined;
}

/** `plural.group`; of the core group `plural.`. */
export type LoginResource = `${string}.${string}`;

export interface LoginServer {
  handles(path: string): boolean;
  /** Answers the request; rejects with ApiErrors at most. */
  answer(request: HttpRequest, response: HttpResponse, connection: ConnectionInfo): Promise<void>;
  /** Creates the objects that logins need. Idempotent. */
  prepare(): Promise<void>;
  /** Ends timers and threads. */
  stop(): Promise<void>;
}

export type CreateLogin = (objects: LoginObjects) => LoginServer;
