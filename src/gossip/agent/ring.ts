/** A view of the gossip ring over `agent.sock`. It connects whenever the host process runs. */

import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { RingView } from '../../controllers/nodes/node-lifecycle/ring-port.ts';
import type { AgentEvent, AgentMember } from '../membership/agent-port.ts';
import { AgentConnection } from './client.ts';

const RETRY_MS = 1000;

export interface RingOptions {
  readonly socket: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Creates the view and starts to connect to the agent. */
export function followRing({ socket, clock, log }: RingOptions): RingView {
  const members = new Map<string, AgentMember>();
  let listener: ((members: { name: string; state: AgentMember['state'] }[]) => void) | undefined;
  let connection: AgentConnection | undefined;
  let retry: Timer | undefined;
  let stopped = false;

  const emit = (): void => listener?.([...members.values()].map(({ name, state }) => ({ name, state })));
  const take = (events: readonly unknown[]): void => {
    for (const event of events as readonly AgentEvent[]) {
      if (event.kind === 'user-event') continue;
      if (event.kind === 'members') {
        members.clear();
        for (const member of event.members) members.set(member.name, member);
      } else if (event.kind === 'forgotten') members.delete(event.member.name);
      else members.set(event.member.name, event.member);
    }
    emit();
  };
  const again = (): void => {
    if (!stopped) retry = clock.setTimer(RETRY_MS, () => void connect());
  };
  const lost = (): void => {
    connection = undefined;
    members.clear();
    emit();
    again();
  };
  const connect = async (): Promise<void> => {
    try {
      const opened = await AgentConnection.open(socket, { events: take, closed: lost });
      opened.unref();
      connection = opened;
      if (stopped) opened.close();
      else await opened.request('subscribe');
    } catch (error) {
      log.v(4, 'gossip agent not reached', { error: messageOf(error) });
      if (connection === undefined) again();
      else connection.close();
    }
  };
  void connect();
  return {
    follow: (changed) => {
      listener = changed;
      if (members.size > 0) emit();
    },
    addressOf: (name) => {
      const member = members.get(name);
      return member?.state === 'alive' ? /^\[?(.*?)\]?:\d+$/.exec(member.address)?.[1] : undefined;
    },
    storeLeader: () => leaderOf([...members.values()]),
    stop: () => {
      stopped = true;
      retry?.cancel();
      connection?.close();
    },
  };
}

/** ID of the store member that most stores in the ring report as their leader; undefined if there is none. */
function leaderOf(members: readonly AgentMember[]): string | undefined {
  const votes = new Map<string, number>();
  for (const { state, store } of members)
    if (state === 'alive' && store?.state === 'up' && store.leaderSeen !== undefined)
      votes.set(store.leaderSeen, (votes.get(store.leaderSeen) ?? 0) + 1);
  const [leader] = [...votes].toSorted(([, left], [, right]) => right - left)[0] ?? [];
  return leader === undefined ? undefined : members.find(({ store }) => store?.memberId === leader)?.name;
}
