/** Pages of `hyperedge help TOPIC` and of the manual. */

export interface Topic {
  readonly title: string;
  /** Lines of at most 80 columns. */
  readonly text: string;
}

export const TOPICS: Readonly<Record<string, Topic>> = {
  roles: {
    title: 'roles of a host',
    text: `Roles of a host

A host has one or several roles: --roles of hyperedge install, or roles in
/etc/origin/bootstrap.yaml.

  node     runs pods: kubelet and service proxy; required on every host
  master   runs the API server, the controllers and the scheduler
  etcd     runs a member of the store

Default: master,etcd,node, a cluster of one host. A host that joins has the
roles of its token. Use one or three masters with a store member: two members
do not survive the loss of one.

Commands: hyperedge status, hyperedge members, hyperedge token create --roles
`,
  },
  bootstrap: {
    title: 'the bootstrap file and a first host',
    text: `Bootstrap

  hyperedge doctor --preflight      checks before an installation
  hyperedge install                 a cluster of one host
  hyperedge get nodes               the node is Ready

The settings of a host are in /etc/origin/bootstrap.yaml and in its drop-ins
/etc/origin/bootstrap.yaml.d/*.yaml. Every field has a default.

  hyperedge config check            the first error, with file, line and field
  hyperedge config show             the settings in force and where each is from
  hyperedge config schema           JSON schema for editors

The host process reads the file when it starts: systemctl restart hyperedge
`,
  },
  joining: {
    title: 'joining hosts to a cluster',
    text: `Joining

On a master:

  hyperedge token create                            for nodes, 24 hours
  hyperedge token create --roles master,etcd,node   for masters, 1 hour

On the new host, the command that token create prints:

  hyperedge install --join https://MASTER:8443 --token TOKEN --ca-hash HASH

A token may be used by several hosts. A token for masters gives access to the
keys of the cluster: revoke it when the masters have joined.

  hyperedge token list
  hyperedge token revoke ID

Ports between hosts: TCP 8443 and 10250, TCP and UDP 7946; between masters also
TCP 2379 and 2380; between subnets also UDP 4789.

A host leaves with: hyperedge reset
`,
  },
  updates: {
    title: 'releases and updates',
    text: `Updates

A release is one signed file. Masters verify it with updates.keys of the
bootstrap file.

  hyperedge bundle verify FILE      checks the signature and the files
  hyperedge bundle import FILE      offers the release, on a master
  oc adm upgrade --to VERSION       starts the update
  oc get clusterversion -w          shows its progress

Hosts are updated one after the other. A host that does not become healthy
returns to its former release. Pods keep running.

  hyperedge bundle list             releases of the cluster
  hyperedge bundle rollback         this host runs its former release again
  hyperedge version --check FILE    compares this executable with a release
`,
  },
  backup: {
    title: 'snapshots and restores',
    text: `Backup

  hyperedge snapshot save FILE      a snapshot of the running store
  hyperedge snapshot schedule       the automatic snapshots of this host
  hyperedge snapshot list           the snapshots of this host, verified
  hyperedge snapshot status FILE    every row of a snapshot, verified

Keep the files below /etc/origin and /etc/etcd too: they hold the authorities
and keys. Store both encrypted on another host. Images and volumes are not part
of a snapshot.

  hyperedge snapshot restore FILE   a new store, from a snapshot
  hyperedge members recover         one member continues after a quorum loss
`,
  },
  rigs: {
    title: 'shared test rigs',
    text: `Rigs

A Rig combines the fixtures of one bench. A RigClaim requests it; claims wait in
a queue, and a lease ends by itself.

  hyperedge rig list                           rigs, holders and queues
  hyperedge rig claim RIG --duration 30m --wait
  hyperedge rig console CLAIM                  serial console; Ctrl-] closes it
  hyperedge rig power cycle CLAIM              off and on
  hyperedge rig release CLAIM
  hyperedge rig history RIG                    last uses, newest first
  hyperedge rig recordings RIG [FILE]          recorded output of consoles

-n NAMESPACE selects the namespace of the claim. Administrators name a rig
instead of a claim with --rig.
`,
  },
  'exit-codes': {
    title: 'exit codes',
    text: `Exit codes

  0   success
  1   failure, or a finding such as an unreachable member
  2   invalid usage: unknown command or flag, missing argument, invalid value
  3   hyperedge doctor only: warnings, no errors

Verbs of the built-in client exit with 1 for an error, as kubectl does; exec
passes on the exit code of its command. Errors are one line on stderr: the field
or object, what is wrong, and what to do. --verbose adds the stack.
`,
  },
  environment: {
    title: 'environment variables and files',
    text: `Environment

  KUBECONFIG     kubeconfig files of the built-in client, separated by colons
  KUBECACHEDIR   cache of the client (default ~/.kube/cache)
  NO_COLOR       no colours
  KUBE_EDITOR, EDITOR
                 editor of hyperedge edit
  ETCD_*         options of hyperedge etcd, as for etcd

Files

  /etc/origin/bootstrap.yaml              settings of this host
  /etc/origin/bootstrap.yaml.d/*.yaml     drop-ins, in the order of their names
  /etc/origin/master/admin.kubeconfig     the administrator, on masters
  /var/lib/origin                         data of the node and of the store

The client reads --kubeconfig, then KUBECONFIG, then ~/.kube/config, then the
administrator's file of this host.
`,
  },
};
