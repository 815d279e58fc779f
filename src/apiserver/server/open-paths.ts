/** Paths that are answered without the API server's authentication and authorization. */
import type { IdentitySettings } from '../config/server-config.ts';
import type { Console } from '../console/console.ts';
import type { Exchange } from '../http/exchange.ts';
import type { RequestInfo } from '../http/request-info.ts';
import type { HttpRequest } from '../port.ts';
import type { LoginServer } from './login-port.ts';

/**
 * Config map that joining hosts read before they trust the server. RBAC decides whether anonymous clients may read it.
 */
const CLUSTER_INFO = '/api/v1/namespaces/kube-public/configmaps/cluster-info';
/** Path to which hosts without credentials post signed offers. RBAC decides whether anonymous clients may do so. */
const HOST_OFFERS = '/apis/machine.hyperedge.dev/v1alpha1/hostoffers';
/** Paths that reveal nothing about the cluster. Load balancers and probes have no credentials. */
const PUBLIC = /^\/(?:healthz|livez|readyz|version)(?:\/|$)/;

/** Reports whether a request without credentials is passed on to authorization, as the anonymous user. */
export function allowsAnonymous(info: RequestInfo, settings: IdentitySettings): boolean {
  const { anonymous = 'health', anonymousPaths = [] } = settings;
  if (anonymous === 'paths') return anonymousPaths.includes(info.path);
  if (anonymous !== 'health') return anonymous === 'all';
  if (info.path === HOST_OFFERS) return info.resource && info.verb === 'create';
  return info.path === CLUSTER_INFO || (!info.resource && PUBLIC.test(info.path));
}

/**
 * Handlers of open paths: the OAuth server, which authenticates users itself, and the console, whose files are public.
 */
export class OpenPaths {
  readonly #login: LoginServer | undefined;
  readonly #console: Console | undefined;

  constructor(login?: LoginServer, console?: Console) {
    this.#login = login;
    this.#console = console;
  }

  handles(path: string, request: HttpRequest): boolean {
    return this.#login?.handles(path) === true || this.isPublic(path, request);
  }

  /** Reports whether a path for which `handles` is true is a file that needs no credentials. */
  isPublic(path: string, request: HttpRequest): boolean {
    return this.#console?.handles(path) === true || this.#console?.leadsTo(path, request) === true;
  }

  /** Answers a request for which `handles` is true. Returns undefined if the response is complete or on its way. */
  answer({ info, audit, request, response, connection }: Exchange): Promise<void> | undefined {
    if (this.#console !== undefined && this.isPublic(info.path, request)) {
      audit?.decided({ allowed: true, reason: 'the files of the console are public' });
      this.#console.answer(info.path, request, response);
      return undefined;
    }
    audit?.decided({ allowed: true, reason: 'the OAuth server decides itself' });
    return this.#login?.answer(request, response, connection);
  }
}
