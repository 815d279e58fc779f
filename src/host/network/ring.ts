/** Requests of commands to the gossip agent of the host process, and new keyrings. */
import { callAgent } from '../../gossip/agent/index.ts';
import { newKeyringText } from '../../gossip/memberlist/index.ts';
import { canonicalRoot, pathsBelow } from '../config/paths.ts';

export type { AgentMember, KeyReport } from '../../gossip/membership/agent-port.ts';
export { newKeyringText };

const CALL_MS = 30_000;

/**
 * Sends a request to the gossip agent of the host process. Throws CodedErrors if the host process does not run and for
 * errors of the agent.
 */
export async function requestAgent<T>(root: string | undefined, method: string, params: unknown): Promise<T> {
  return callAgent<T>(pathsBelow(await canonicalRoot(root)).agentSocket, method, params, CALL_MS);
}
