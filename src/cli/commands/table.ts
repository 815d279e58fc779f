/** The table of commands. Help, completion, man pages and the overview in docs/ are generated from it. */
import type { Command, CommandGroup } from '../command.ts';
import { bundleCreateCommand } from './bundle/create.ts';
import { bundleImportCommand } from './bundle/import.ts';
import { bundleListCommand } from './bundle/list.ts';
import { bundleOfflineCommand } from './bundle/offline.ts';
import { bundleRemoveCommand } from './bundle/remove.ts';
import { bundleRollbackCommand } from './bundle/rollback.ts';
import { bundleVerifyCommand } from './bundle/verify.ts';
import { caRotateCommand } from './ca/rotate.ts';
import { consoleCommand } from './cluster/console.ts';
import { gatherCommand } from './cluster/gather.ts';
import { haproxyConfigCommand } from './cluster/haproxy-config.ts';
import { keepalivedConfigCommand } from './cluster/keepalived-config.ts';
import { updateGuardCommand } from './cluster/update-guard.ts';
import { configCheckCommand } from './config/check.ts';
import { configSchemaCommand } from './config/schema.ts';
import { configShowCommand } from './config/show.ts';
import { gossipJoinCommand } from './gossip/join.ts';
import { gossipKeygenCommand } from './gossip/keygen.ts';
import { gossipKeysCommand } from './gossip/keys.ts';
import { gossipLeaveCommand } from './gossip/leave.ts';
import { gossipMembersCommand } from './gossip/members.ts';
import { alertsCommand } from './host/alerts.ts';
import { completionCommand } from './host/completion.ts';
import { doctorCommand } from './host/doctor.ts';
import { doctorProbeCommand } from './host/doctor-probe.ts';
import { helpCommand } from './host/help.ts';
import { installCommand } from './host/install.ts';
import { masterLogsCommand } from './host/master-logs.ts';
import { masterRestartCommand } from './host/master-restart.ts';
import { resetCommand } from './host/reset.ts';
import { statusCommand } from './host/status.ts';
import { supportBundleCommand } from './host/support-bundle.ts';
import { sysinfoCommand } from './host/sysinfo.ts';
import { uninstallCommand } from './host/uninstall.ts';
import { versionCommand } from './host/version.ts';
import { imageExportCommand } from './image/export.ts';
import { imageImportCommand } from './image/import.ts';
import { imageListCommand } from './image/list.ts';
import { imagePinCommand } from './image/pin.ts';
import { imagePullCommand } from './image/pull.ts';
import { imageRemoveCommand } from './image/remove.ts';
import { imageUnpinCommand } from './image/unpin.ts';
import { imageVerifyCommand } from './image/verify.ts';
import { kubeadminCreateCommand } from './kubeadmin/create.ts';
import { machineConfigReplayCommand } from './machine-config/replay.ts';
import { membersAddCommand } from './members/add.ts';
import { membersCompactCommand } from './members/compact.ts';
import { membersListCommand } from './members/list.ts';
import { membersCommand } from './members/members.ts';
import { membersNewClusterCommand } from './members/new-cluster.ts';
import { membersPromoteCommand } from './members/promote.ts';
import { membersRecoverCommand } from './members/recover.ts';
import { membersRemoveCommand } from './members/remove.ts';
import { apiCommand } from './processes/api.ts';
import { controllersCommand } from './processes/controllers.ts';
import { envtestCommand } from './processes/envtest.ts';
import { etcdCommand } from './processes/etcd.ts';
import { hollowCommand } from './processes/hollow.ts';
import { keepBalancerCommand } from './processes/keep-balancer.ts';
import { proxyCommand } from './processes/proxy.ts';
import { runCommand } from './processes/run.ts';
import { volumeCallCommand } from './processes/volume-call.ts';
import { revisionsDiffCommand } from './revisions/diff.ts';
import { revisionsListCommand } from './revisions/list.ts';
import { revisionsRollbackCommand } from './revisions/rollback.ts';
import { rigClaimCommand } from './rig/claim.ts';
import { rigConsoleCommand } from './rig/console.ts';
import { rigHistoryCommand } from './rig/history.ts';
import { rigListCommand } from './rig/list.ts';
import { rigPowerCommand } from './rig/power.ts';
import { rigRecordingsCommand } from './rig/recordings.ts';
import { rigReleaseCommand } from './rig/release.ts';
import { secretsEncryptReencryptCommand } from './secrets-encrypt/reencrypt.ts';
import { secretsEncryptRotateCommand } from './secrets-encrypt/rotate.ts';
import { secretsEncryptStatusCommand } from './secrets-encrypt/status.ts';
import { snapshotListCommand } from './snapshot/list.ts';
import { snapshotPushCommand } from './snapshot/push.ts';
import { snapshotRestoreCommand } from './snapshot/restore.ts';
import { snapshotSaveCommand } from './snapshot/save.ts';
import { snapshotScheduleCommand } from './snapshot/schedule.ts';
import { snapshotStatusCommand } from './snapshot/status.ts';
import { tokenCreateCommand } from './token/create.ts';
import { tokenListCommand } from './token/list.ts';
import { tokenRevokeCommand } from './token/revoke.ts';

export const COMMAND_GROUPS: readonly CommandGroup[] = [
  {
    title: 'This host',
    commands: [
      installCommand,
      resetCommand,
      uninstallCommand,
      statusCommand,
      alertsCommand,
      doctorCommand,
      supportBundleCommand,
      sysinfoCommand,
      versionCommand,
      helpCommand,
      completionCommand,
      configCheckCommand,
      configShowCommand,
      configSchemaCommand,
      masterRestartCommand,
      masterLogsCommand,
      machineConfigReplayCommand,
    ],
  },
  {
    title: 'Cluster',
    commands: [
      tokenCreateCommand,
      tokenListCommand,
      tokenRevokeCommand,
      kubeadminCreateCommand,
      consoleCommand,
      caRotateCommand,
      secretsEncryptStatusCommand,
      secretsEncryptRotateCommand,
      secretsEncryptReencryptCommand,
      revisionsListCommand,
      revisionsDiffCommand,
      revisionsRollbackCommand,
      gossipMembersCommand,
      gossipJoinCommand,
      gossipLeaveCommand,
      gossipKeysCommand,
      gossipKeygenCommand,
      haproxyConfigCommand,
      keepalivedConfigCommand,
      gatherCommand,
    ],
  },
  {
    title: 'Updates',
    commands: [
      bundleCreateCommand,
      bundleOfflineCommand,
      bundleVerifyCommand,
      bundleImportCommand,
      bundleListCommand,
      bundleRemoveCommand,
      bundleRollbackCommand,
      updateGuardCommand,
    ],
  },
  {
    title: 'Store',
    commands: [
      membersCommand,
      membersListCommand,
      membersAddCommand,
      membersRemoveCommand,
      membersPromoteCommand,
      membersCompactCommand,
      membersRecoverCommand,
      membersNewClusterCommand,
      snapshotSaveCommand,
      snapshotListCommand,
      snapshotStatusCommand,
      snapshotRestoreCommand,
      snapshotPushCommand,
      snapshotScheduleCommand,
    ],
  },
  {
    title: 'Images',
    commands: [
      imageImportCommand,
      imageListCommand,
      imageRemoveCommand,
      imageExportCommand,
      imagePullCommand,
      imagePinCommand,
      imageUnpinCommand,
      imageVerifyCommand,
    ],
  },
  {
    title: 'Rigs',
    commands: [
      rigListCommand,
      rigClaimCommand,
      rigReleaseCommand,
      rigConsoleCommand,
      rigPowerCommand,
      rigHistoryCommand,
      rigRecordingsCommand,
    ],
  },
  {
    title: 'Processes',
    commands: [
      runCommand,
      etcdCommand,
      apiCommand,
      controllersCommand,
      proxyCommand,
      hollowCommand,
      envtestCommand,
      keepBalancerCommand,
      volumeCallCommand,
      doctorProbeCommand,
    ],
  },
];

export const COMMANDS: readonly Command[] = COMMAND_GROUPS.flatMap(({ commands }) => commands);
