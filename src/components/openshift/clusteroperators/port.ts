/** What operators probe beside the API. Implemented by `src/io/hostprobes` and by the administration of the store. */
import type { HostProbe } from '../../../api/kinds/nodes/host-report.ts';
import type { EtcdFact } from '../../../core/clusteroperators/facts.ts';

/** Rejects with the reason, in words that stay the same while the fault lasts, or when the signal aborts. */
export type Probe = (signal: AbortSignal) => Promise<void>;

/** Of the components that this host runs. */
export type HostProbes = ReadonlyMap<HostProbe, Probe>;

/** The members of the store as they are now. Rejects when no member answers. */
export type ProbeStore = () => Promise<EtcdFact>;

/**
 * Lets the store write what former releases cannot read: no host returns to one. Resolves with false while a member is
 * of a former release.
 */
export type CommitStore = () => Promise<boolean>;
