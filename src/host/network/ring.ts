/** Requests of commands to the gossip agent of the host process, and new keyrings. */
import { callAgent } from '../../gossip/agent/index.ts';
import { newKeyringText } from '../../gossip/memberlist/index.ts';
import { canonicalRoot, pathsBelow } from '../config/settings.ts';

export type { AgentMember, KeyReport } from '../../gossip/membership/agent-port.ts';
export { newKeyringText };

const CALL_MS = 30_000;

/** Throws CodedErrors: the host process does not run, or the agent's own error. */
export async function requestAgent<T>(root: string | undefined, method: string, params: unknown): Promise<T> {
  return callAgent<T>(pathsBelow(await canonicalRoot(root)).agentSocket, method, params, CALL_MS);
}
