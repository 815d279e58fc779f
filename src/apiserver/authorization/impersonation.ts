/**
 * User impersonation. A user without the verb `impersonate` may be allowed to impersonate for certain requests only
 * (`impersonate:MODE` with `impersonate-on:MODE:VERB`). Sources: k8s.io/apiserver/pkg/endpoints/filters/impersonation;
 * KEP-5284.
 */

import { type ApiError, errors, isApiError } from '../../api/meta/status.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import { BoundedMap } from '../../base/bounded-map.ts';
import { extraOf, valuesOf } from '../authentication/front-proxy.ts';
import type { RequestInfo } from '../http/request-info.ts';
import type { HttpRequest } from '../port.ts';
import type { Authorization } from './authorization.ts';
import { checksOf, type ImpersonationRequest, LEGACY, MODES, type Mode } from './impersonation-modes.ts';

const EXTRA_PREFIX = 'impersonate-extra-';
/** Maximum number of cached modes. */
const MAX_REMEMBERED = 10_000;

export interface ImpersonationNote {
  /** The verb that allowed the impersonation, `impersonate:MODE`; '' for plain impersonation. */
  impersonation: string;
}

interface Attempt {
  /** Modes in the order in which they are tried. */
  readonly modes: readonly Mode[];
  readonly requested: ImpersonationRequest;
  /** User that sent the request. */
  readonly user: UserInfo;
  readonly info: RequestInfo;
  readonly note: ImpersonationNote;
}

export class Impersonation {
  readonly #authorization: Authorization;
  /**
   * Last successful mode by user. It is tried first, so that a user with all permissions is not checked for every mode.
   */
  readonly #modes = new BoundedMap<string, Mode>(MAX_REMEMBERED);

  constructor(authorization: Authorization) {
    this.#authorization = authorization;
  }

  /**
   * Returns the impersonated user, or `user` if the request has no impersonation headers. Throws or rejects with
   * 'Forbidden'.
   */
  of(request: HttpRequest, user: UserInfo, info: RequestInfo, note: ImpersonationNote): UserInfo | Promise<UserInfo> {
    const requested = impersonationOf(request);
    if (requested === undefined) return user;
    const last = this.#modes.get(user.name);
    const modes = last === undefined ? MODES : [last, ...MODES.filter((mode) => mode !== last)];
    return this.#tryMode({ modes, requested, user, info, note }, 0, undefined);
  }

  /**
   * Tries the mode at the index, and the following ones if it fails. If all fail, the error of the first applicable
   * mode, `refused`, is reported.
   */
  #tryMode(attempt: Attempt, at: number, refused: unknown): UserInfo | Promise<UserInfo> {
    const { modes, requested, user, info, note } = attempt;
    const mode = modes[at];
    if (mode === undefined) throw refused;
    const next = (error: unknown): UserInfo | Promise<UserInfo> => {
      if (error !== undefined && !isApiError(error)) throw error;
      return this.#tryMode(attempt, at + 1, refused ?? error);
    };
    if (!mode.applies(requested, user)) return next(undefined);
    const done = (never: ApiError | undefined): UserInfo | Promise<UserInfo> => {
      if (never !== undefined) return next(never);
      this.#modes.set(user.name, mode);
      note.impersonation = mode === LEGACY ? '' : mode.verb;
      return mode.become(requested);
    };
    try {
      const { by, actions, never } = checksOf(mode, requested, user, info);
      const allowed = this.#authorization.requireEach(by, actions);
      return allowed === undefined ? done(never) : allowed.then(() => done(never), next);
    } catch (error) {
      return next(error);
    }
  }
}

/**
 * Parses the impersonation headers; undefined if there are none. Throws 'BadRequest' for groups, uid or extra without a
 * user.
 */
function impersonationOf(request: HttpRequest): ImpersonationRequest | undefined {
  const { headers } = request;
  const name = String(headers['impersonate-user'] ?? '');
  const uid = String(headers['impersonate-uid'] ?? '');
  const more = uid !== '' || Object.keys(headers).some(isPart);
  if (name === '' && !more) return undefined;
  const requested = {
    name,
    uid,
    groups: valuesOf(request, 'impersonate-group'),
    extra: extraOf(request, EXTRA_PREFIX),
  };
  if (name === '') throw errors.badRequest(`requested ${goText(requested)} without impersonating a user name`);
  return requested;
}

function isPart(header: string): boolean {
  return header === 'impersonate-group' || header.startsWith(EXTRA_PREFIX);
}

/** The identity as Go's fmt prints it. */
function goText({ name, uid, groups, extra }: ImpersonationRequest): string {
  const list = (values: readonly string[]): string =>
    values.length === 0 ? '[]string(nil)' : `[]string{${values.map((value) => JSON.stringify(value)).join(', ')}}`;
  const entries = Object.entries(extra).map(([key, values]) => `${JSON.stringify(key)}:${list(values)}`);
  const map = entries.length === 0 ? 'map[string][]string(nil)' : `map[string][]string{${entries.sort().join(', ')}}`;
  return `&user.DefaultInfo{Name:${JSON.stringify(name)}, UID:${JSON.stringify(uid)}, Groups:${list(groups)}, Extra:${map}}`;
}
