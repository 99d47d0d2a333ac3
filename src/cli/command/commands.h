#pragma once
// The commands: each does what its options ask and returns the exit code. One file per command, named after it.

#include "cli/options.h"
#include "cli/session.h"

namespace berth::cli {

Result<int> run(const SubmitOptions& options, Session& session);
Result<int> run(const RunOptions& options, Session& session);
Result<int> run(const ExecOptions& options, Session& session);
Result<int> run(const AttachOptions& options, Session& session);
Result<int> run(const JobsOptions& options, Session& session);
Result<int> run(const JobViewOptions& options, Session& session);
Result<int> run(const WhyOptions& options, Session& session);
Result<int> run(const JobActionOptions& options, Session& session);
Result<int> run(const PrioritizeOptions& options, Session& session);
Result<int> run(const WaitOptions& options, Session& session);
Result<int> run(const MoveOptions& options, Session& session);
Result<int> run(const LogsOptions& options, Session& session);
Result<int> run(const QueuesOptions& options, Session& session);
Result<int> run(const TopOptions& options, Session& session);
Result<int> run(const NodesOptions& options, Session& session);
Result<int> run(const NodeActionOptions& options, Session& session);
Result<int> run(const MaintenanceOptions& options, Session& session);
Result<int> run(const ClockOptions& options, Session& session);
Result<int> run(const TokenOptions& options, Session& session);
Result<int> run(const AuthOptions& options, Session& session);
Result<int> run(const LoginOptions& options, Session& session);
Result<int> run(const LogoutOptions& options, Session& session);
Result<int> run(const ContextOptions& options, Session& session);
Result<int> run(const WhoamiOptions& options, Session& session);
Result<int> run(const CapacityOptions& options, Session& session);
Result<int> run(const AdviseOptions& options, Session& session);
Result<int> run(const DoctorOptions& options, Session& session);
Result<int> run(const EventsOptions& options, Session& session);
Result<int> run(const AuditOptions& options, Session& session);
Result<int> run(const UsageOptions& options, Session& session);
Result<int> run(const PricesOptions& options, Session& session);
Result<int> run(const PolicyOptions& options, Session& session);
Result<int> run(const BillOptions& options, Session& session);
Result<int> run(const InvoiceOptions& options, Session& session);
Result<int> run(const QuantitiesOptions& options, Session& session);
Result<std::string> price_body(const std::string& file);  // of a price book, as the server takes it
Error in_file(Error error, const std::string& file);      // names the file where the server tells places in the body
Result<int> run(const QueueChangeOptions& options, Session& session);
Result<int> run(const BindOptions& options, Session& session);
Result<int> run(const RolesOptions& options, Session& session);
Result<int> run(const ApplyOptions& options, Session& session);
Result<int> run(const DiffOptions& options, Session& session);
Result<int> run(const CheckOptions& options, Session& session);
Result<int> run(const ConfigOptions& options, Session& session);
Result<int> run(const CheckpointDoneOptions& options, Session& session);
Result<int> run(const JobTokenOptions& options, Session& session);
Result<int> run(const KeysOptions& options, Session& session);
Result<int> run(const SnapshotOptions& options, Session& session);
Result<int> run(const StatusOptions& options, Session& session);
Result<int> run(const VersionOptions& options, Session& session);
Result<int> run(const CompletionOptions& options, Session& session);

}  // namespace berth::cli
