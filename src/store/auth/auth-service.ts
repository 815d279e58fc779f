import type { Log } from '../../base/log.ts';
import { AuthError } from '../core/auth/errors.ts';
import type { AuthCommand } from '../core/auth/types.ts';
import {
  decodeNamedRequest,
  decodeRoleGrantPermissionRequest,
  decodeRoleRevokePermissionRequest,
  decodeUserAddRequest,
  writePermission,
} from '../core/messages/auth.ts';
import type { Encoder } from '../services/encode.ts';
import type { UnaryHandlers } from '../services/kv-service.ts';
import { answerUnary } from '../services/rpc-errors.ts';
import type { Auth } from './auth.ts';

export interface AuthServiceDeps {
  readonly auth: Auth;
  readonly encoder: Encoder;
  readonly log: Log;
  /** The store's revision, for response headers. */
  readonly revision: () => number;
  /** Resolves when everything acknowledged before the call is applied here. */
  readonly upToDate: () => Promise<void>;
  /** Whether a leader exists or is elected soon. */
  readonly isLed: () => Promise<boolean>;
}

/** `etcdserverpb.Auth`. The guard (auth-guard.ts) authorizes its calls. */
export function authService({ auth, encoder, log, revision, upToDate, isLed }: AuthServiceDeps): UnaryHandlers {
  const { machine } = auth;
  const changes =
    (commandOf: (message: Uint8Array) => AuthCommand | Promise<AuthCommand>): UnaryHandlers[string] =>
    (message, call) =>
      answerUnary(call, log, async () => {
        await upToDate();
        const command = await commandOf(message);
        await auth.change(command);
        log.info('authentication settings changed', summary(command));
        return encoder.begin(revision()).finish();
      });

  return {
    '/etcdserverpb.Auth/AuthEnable': changes(() => ({ kind: 'enable' })),
    '/etcdserverpb.Auth/AuthDisable': changes(() => ({ kind: 'disable' })),
    '/etcdserverpb.Auth/AuthStatus': (_message, call) =>
      answerUnary(call, log, async () => {
        await upToDate();
        return encoder.begin(revision()).bool(2, machine.enabled).int(3, machine.revision).finish();
      }),
    '/etcdserverpb.Auth/Authenticate': (message, call) =>
      answerUnary(call, log, async () => {
        const { name, second: password } = decodeNamedRequest(message);
        const led = await isComplete(upToDate, isLed);
        try {
          const token = await auth.authenticate(name, password, !led);
          return encoder.begin(revision()).string(2, token).finish();
        } catch (error) {
          if (error instanceof AuthError) log.warn('authentication refused', { user: name, cause: error.code });
          throw error;
        }
      }),

    '/etcdserverpb.Auth/UserAdd': changes(async (message) => {
      const { name, password, noPassword } = decodeUserAddRequest(message);
      const command = { kind: 'user-add', name, noPassword, passwordHash: '' } as const;
      // Hashing is expensive, so invalid requests are rejected first.
      machine.check(command);
      return noPassword ? command : { ...command, passwordHash: await auth.hash(password) };
    }),
    '/etcdserverpb.Auth/UserGet': (message, call) =>
      answerUnary(call, log, async () => {
        await upToDate();
        const user = machine.user(decodeNamedRequest(message).name);
        if (user === undefined) throw new AuthError('user-not-found');
        const out = encoder.begin(revision());
        for (const role of user.roles) out.string(2, role);
        return out.finish();
      }),
    '/etcdserverpb.Auth/UserList': (_message, call) =>
      answerUnary(call, log, async () => {
        await upToDate();
        const out = encoder.begin(revision());
        for (const name of machine.userNames()) out.string(2, name);
        return out.finish();
      }),
    '/etcdserverpb.Auth/UserDelete': changes((message) => ({
      kind: 'user-delete',
      name: decodeNamedRequest(message).name,
    })),
    '/etcdserverpb.Auth/UserChangePassword': changes(async (message) => {
      const { name, second: password } = decodeNamedRequest(message);
      const command = { kind: 'user-change-password', name, passwordHash: '' } as const;
      machine.check(command);
      return { ...command, passwordHash: await auth.hash(password) };
    }),
    '/etcdserverpb.Auth/UserGrantRole': changes((message) => {
      const { name, second: role } = decodeNamedRequest(message);
      return { kind: 'user-grant-role', name, role };
    }),
    '/etcdserverpb.Auth/UserRevokeRole': changes((message) => {
      const { name, second: role } = decodeNamedRequest(message);
      return { kind: 'user-revoke-role', name, role };
    }),

    '/etcdserverpb.Auth/RoleAdd': changes((message) => ({ kind: 'role-add', role: decodeNamedRequest(message).name })),
    '/etcdserverpb.Auth/RoleGet': (message, call) =>
      answerUnary(call, log, async () => {
        await upToDate();
        const role = machine.role(decodeNamedRequest(message).name);
        if (role === undefined) throw new AuthError('role-not-found');
        const out = encoder.begin(revision());
        for (const permission of role.permissions) writePermission(out, 2, permission);
        return out.finish();
      }),
    '/etcdserverpb.Auth/RoleList': (_message, call) =>
      answerUnary(call, log, async () => {
        await upToDate();
        const out = encoder.begin(revision());
        for (const name of machine.roleNames()) out.string(2, name);
        return out.finish();
      }),
    '/etcdserverpb.Auth/RoleDelete': changes((message) => ({
      kind: 'role-delete',
      role: decodeNamedRequest(message).name,
    })),
    '/etcdserverpb.Auth/RoleGrantPermission': changes((message) => {
      const { name, permission } = decodeRoleGrantPermissionRequest(message);
      return { kind: 'role-grant-permission', role: name, permission };
    }),
    '/etcdserverpb.Auth/RoleRevokePermission': changes((message) => ({
      kind: 'role-revoke-permission',
      ...decodeRoleRevokePermissionRequest(message),
    })),
  };
}

/**
 * Waits until users added, or auth enabled, through another member are applied here. Returns false without a leader;
 * operators must still be able to log in then. Source: etcd v3_server.go, Authenticate, which waits for a leader
 * without a limit.
 */
async function isComplete(upToDate: AuthServiceDeps['upToDate'], isLed: AuthServiceDeps['isLed']): Promise<boolean> {
  if (!(await isLed())) return false;
  try {
    await upToDate();
    return true;
  } catch (error) {
    if (await isLed()) throw error;
    return false;
  }
}

function summary(command: AuthCommand): Readonly<Record<string, string>> {
  return {
    change: command.kind,
    ...('name' in command ? { user: command.name } : {}),
    ...('role' in command ? { role: command.role } : {}),
  };
}
