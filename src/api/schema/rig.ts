/** rig.hyperedge.dev/v1alpha1: rigs for hardware-in-the-loop tests, and rig claims. */
import { declarePackage } from './openshift/declare.ts';

export const rigPackage = declarePackage(
  'v1alpha1',
  {
    Rig: {
      isKind: true,
      about: 'A rig bundles the fixtures of one test bench: a board with its console, relays and supply, used as one.',
      fields: {
        spec: ['!#RigSpec', 'Fixtures, console and power control of the rig.'],
        status: ['#RigStatus', 'Claim to which the rig is granted, and the queue.'],
      },
    },
    RigSpec: {
      about: 'RigSpec defines the parts of a rig.',
      fields: {
        node: ['string', 'Node whose host has the fixtures; default: the node that has all of them.'],
        fixtures: ['![]#RigFixture', 'Fixtures that are granted together.'],
        maxLease: ['string', 'Maximum time for which a rig is granted to a claim, such as 2h; default 1h.'],
        console: ['#RigConsole', 'The serial console of the board.'],
        power: ['#RigPower', 'Power control of the board.'],
      },
    },
    RigFixture: {
      about: 'RigFixture is one fixture of a rig.',
      fields: {
        name: ['!string', 'Name within the rig.'],
        fixture: ['!string', 'Name of the fixture of the node, the last part of rig.hyperedge.dev/NAME.'],
        role: ['string', 'Purpose of the fixture: board, serial, relay, gpio, can, video, block, net or other.'],
      },
    },
    RigConsole: {
      about: 'RigConsole names the serial fixture of the console.',
      fields: {
        fixture: ['!string', 'Name within the rig of the serial fixture.'],
        baudRate: ['int32', 'Bits per second; default 115200.'],
      },
    },
    RigPower: {
      about: 'RigPower defines how the board is switched on, off, and off and on again.',
      fields: {
        on: ['#RigPowerAction', 'Switches the board on.'],
        off: ['#RigPowerAction', 'Switches the board off.'],
        cycle: ['#RigPowerAction', 'Switches the board off and on; default: off, a second of rest, and on.'],
      },
    },
    RigPowerAction: {
      about: 'RigPowerAction is a command of the host, or a channel of a serial relay board.',
      fields: {
        command: ['string', 'Name of an entry of rigPower in the bootstrap file of the host.'],
        fixture: ['string', 'Name within the rig of a serial relay board (LCUS protocol).'],
        channel: ['int32', 'Channel of the relay board, from 1 to 16; default 1.'],
      },
    },
    RigStatus: {
      about: 'RigStatus is the current use of the rig.',
      fields: {
        node: ['string', 'Node that has the fixtures.'],
        holder: ['#RigHolder', 'Claim to which the rig is granted.'],
        queue: ['int32', 'Claims that wait for the rig.'],
        expiresAt: ['date-time', 'When the lease of the holder ends.'],
        history: ['[]#RigUse', 'The last 50 uses of the rig, newest first.'],
      },
    },
    RigHolder: {
      about: 'RigHolder names a claim.',
      fields: {
        namespace: ['!string', 'Namespace of the claim.'],
        name: ['!string', 'Name of the claim.'],
        requester: ['string', 'User that made the claim.'],
      },
    },
    RigUse: {
      about: 'RigUse is one use of a rig by a claim.',
      fields: {
        namespace: ['!string', 'Namespace of the claim.'],
        name: ['!string', 'Name of the claim.'],
        uid: ['!string', 'UID of the claim.'],
        requester: ['string', 'User that made the claim.'],
        node: ['string', 'Node of the rig when the use began.'],
        grantedAt: ['!date-time', 'When the use began.'],
        endedAt: ['date-time', 'When the use ended or its end was noticed; unset while the claim has the rig.'],
        reason: ['string', 'Released, Expired or Deleted; unset while the claim has the rig.'],
      },
    },
    RigRecordingList: {
      isRequest: true,
      about: 'RigRecordingList is a list of the recordings of the consoles of a rig, newest first.',
      fields: {
        items: ['![]#RigRecording', 'Items of the list, of the present node of the rig and of earlier ones.'],
        failures: ['[]#RigRecordingFailure', 'Nodes whose recordings are missing in the list.'],
      },
    },
    RigRecordingFailure: {
      about: 'RigRecordingFailure is the reason why the recordings on a node could not be listed.',
      fields: { node: ['!string', 'Name of the node.'], message: ['!string', 'Reason.'] },
    },
    RigRecording: {
      about: 'RigRecording is a file on a node of the rig.',
      fields: {
        node: ['!string', 'Node that has the file.'],
        name: ['!string', 'Name of the file.'],
        start: ['!date-time', 'When the console was opened.'],
        bytes: ['!int64', 'Size of the file.'],
        isOpen: ['!boolean', 'Whether the file is being written.'],
      },
    },
    RigClaim: {
      isKind: true,
      about: 'A claim requests exclusive use of one rig for a limited time. Claims wait in a fair queue.',
      fields: {
        spec: ['!#RigClaimSpec', 'Requested rig and duration.'],
        status: ['#RigClaimStatus', 'Whether the claim has its rig.'],
      },
    },
    RigClaimSpec: {
      about: 'RigClaimSpec names a rig, or selects any of several by their labels.',
      fields: {
        rigName: ['string', 'Name of the rig.'],
        selector: ['#meta.LabelSelector', 'Instead of a name: labels of rigs, any of which will do.'],
        duration: ['string', 'Length of the lease, such as 30m; default and limit: maxLease of the rig.'],
      },
    },
    RigClaimStatus: {
      about: 'RigClaimStatus is what the controller has decided.',
      fields: {
        phase: ['string', 'Queued, Granted, Released or Expired.'],
        requester: ['string', 'User that made the claim; users of a namespace share rigs fairly.'],
        position: ['int32', 'Place in the queue, from 1; 0 when the claim does not wait.'],
        rig: ['string', 'Rig that was granted.'],
        grantedAt: ['date-time', 'When the lease began.'],
        expiresAt: ['date-time', 'When the lease ends.'],
        conditions: ['[]#meta.Condition', 'Granted, with the reason.'],
      },
    },
  },
  'dev.hyperedge.rig',
);
