/** Facts, besides the object, that a page of `describe` shows. */
import type { CertificateRequestFacts } from '../../api/kinds/identity/certificatesigningrequests/signer-port.ts';
import type { AnyObject } from '../core/objects.ts';
import type { Events } from './page.ts';

export interface Related {
  readonly now: number;
  readonly events: Events;
  /** Pods of a workload or of a claim. */
  readonly pods: readonly AnyObject[];
  readonly replicaSets: readonly AnyObject[];
  readonly endpointSlices: readonly AnyObject[];
  /** Services that an object names, with the error of the request for those that cannot be read. */
  readonly services: ReadonlyMap<string, AnyObject | Error>;
  /** Identities of a user, or the user of an identity, by name, with the error for those that cannot be read. */
  readonly accounts: ReadonlyMap<string, AnyObject | Error>;
  /** Quotas of a namespace; undefined if the server has none. */
  readonly quotas: readonly AnyObject[] | undefined;
  /** Limit ranges of a namespace; undefined if the server has none. */
  readonly limitRanges: readonly AnyObject[] | undefined;
  /** Content of a certificate signing request. */
  readonly request: CertificateRequestFacts | undefined;
}

export type Describer = (object: AnyObject, related: Related) => string;
